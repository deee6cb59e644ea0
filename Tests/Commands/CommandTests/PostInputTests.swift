// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

@Suite struct PostInputTests {
    @Test(arguments: anyBusKind())
    func `30,000 equal lines are 30,000 deliveries`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let count = Counter()
        let observation = try center.addObserver(for: "com.example.line", timeout: .seconds(25)) { _ in count.add() }
        let posting = try start(productPath("notify-post"), ["--address", bus.address, "-v", "-"])
        let lines = String(repeating: "com.example.line\n", count: 500)
        for written in stride(from: 500, through: 30_000, by: 500) {
            try posting.writeInput(lines)
            // Never more than 1,000 outstanding, as an observer that is slow merges by right.
            try #require(count.wait(for: written - 500, timeout: .patience))
        }
        posting.closeInput()
        let result = try posting.wait()
        #expect(result.status == 0)
        #expect(result.errorOutput == "notify-post: posted 30000 names\n")
        try center.barrier(timeout: .patience)
        #expect(count.value == 30_000)
        #expect(center.statistics.coalescedPosts == 0 && center.statistics.coalescedDeliveries == 0)
        observation.cancel()
    }

    @Test(arguments: anyBusKind())
    func `lines as fast as they can be read all reach the bus, and in order`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let heard = Recorder<String>()
        let observation = try center.addObserver(matching: .prefix("com.example."), timeout: .seconds(25)) {
            heard.append($0.string)
        }
        let result = try bus.script("(yes com.example.a | head -50000; seq -f com.example.%g 1 20) | notify-post -")
        #expect(result.status == 0)
        #expect(result.errorOutput == "")
        try #require(heard.wait(timeout: .patience) { $0.last == "com.example.20" })
        // The last callback counts when it has returned.
        try center.barrier(timeout: .patience)
        let statistics = center.statistics
        // Posts that the observer merged, because its thread had to wait for a processor, did reach it.
        #expect(statistics.delivered + statistics.coalescedDeliveries == 50_020)
        #expect(heard.elements.suffix(20).elementsEqual((1...20).map { "com.example.\($0)" }))
        #expect(heard.elements.dropLast(20).allSatisfy { $0 == "com.example.a" })
        observation.cancel()
    }

    @Test(arguments: anyBusKind())
    func `each line is posted as it comes, the last one also without a line feed`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let heard = Recorder<String>()
        let observation = try center.addObserver(matching: .prefix("com.example."), timeout: .seconds(25)) {
            heard.append($0.string)
        }
        let posting = try start(productPath("notify-post"), ["--address", bus.address, "-"])
        for number in 1...5 {
            try posting.writeInput("com.example.\(number)\n")
            // The input is still open, so its end is not the reason for these posts.
            try #require(heard.wait(forCount: number))
        }
        try posting.writeInput("com.exam")
        try posting.writeInput("ple.6\ncom.example.7")
        try #require(heard.wait(forCount: 6))
        posting.closeInput()
        #expect(try posting.wait().status == 0)
        try #require(heard.wait(forCount: 7))
        #expect(heard.elements == (1...7).map { "com.example.\($0)" })
        observation.cancel()
    }

    @Test(arguments: anyBusKind())
    func `names and the input are posted in the order of the operands`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let waiting = try bus.startWaiting(["*", "-n", "5"])
        let result = try bus.run("notify-post", ["one", "-", "four", "--", "five"], input: "two\nthree\n")
        #expect(result.status == 0)
        #expect(result.output == "" && result.errorOutput == "")
        #expect(try waiting.wait().lines == ["one", "two", "three", "four", "five"])
    }

    @Test(arguments: anyBusKind())
    func `an empty input is no failure, one that can't be read is`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let empty = try bus.run("notify-post", ["-"], input: "")
        #expect(empty.status == 0 && empty.errorOutput == "")
        for closed in ["</", "<&-"] {
            let result = try bus.script("notify-post - \(closed)")
            #expect(result.status == 1)
            #expect(result.errorOutput.hasPrefix("notify-post: can't read standard input: "))
        }
    }

    @Test(arguments: anyBusKind())
    func `a line that begins with 'self.' is reported, and the others are posted`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let waiting = try bus.startWaiting(["*", "-n", "2"])
        let result = try bus.run("notify-post", ["-"], input: "a\nself.b\nc\n")
        #expect(result.status == 1)
        #expect(
            result.errorOutput
                == "notify-post: line 2: a name that begins with 'self.' stays in the process that posts it\n"
        )
        #expect(try waiting.wait().lines == ["a", "c"])
    }

    @Test(arguments: anyBusKind())
    func `many names of one command line arrive once each and in order`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let names = (1...3_000).map { "com.example.\($0)" }
        let waiting = try bus.startWaiting(["com.example.*", "-n", "3000"])
        #expect(try bus.run("notify-post", names).status == 0)
        #expect(try waiting.wait().lines == names)
    }

    @Test(arguments: anyBusKind())
    func `a bus that goes away between two lines is status 69, and the line from which on none is sure`(
        kind: BusKind
    ) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let heard = Counter()
        let observation = try center.addObserver(for: "com.example.first", timeout: .seconds(25)) { _ in heard.add() }
        let posting = try start(productPath("notify-post"), ["--address", bus.address, "-"])
        for count in 1...3 {
            try posting.writeInput("com.example.first\n")
            try #require(heard.wait(for: count))
        }
        bus.kill()
        // It may have noticed already.
        try? posting.writeInput("com.example.second\n")
        posting.closeInput()
        let result = try posting.wait()
        #expect(result.status == 69)
        // Which lines the bus has confirmed by then depends on who was quicker.
        let messages = (1...4).map { "notify-post: line \($0): the bus went away; the lines before it were posted" }
        #expect(messages.contains { result.errorOutput.hasPrefix($0) }, "\(result.errorOutput)")
        #expect(!result.errorOutput.contains("user"), "nobody else is to blame")
        observation.cancel()
    }

    @Test(arguments: anyBusKind())
    func `the line that is named is near the last one, however many came at once`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let heard = Recorder<String>()
        let observation = try center.addObserver(matching: .prefix("n."), timeout: .seconds(25)) {
            heard.append($0.string)
        }
        let posting = try start(productPath("notify-post"), ["--address", bus.address, "-"])
        try posting.writeInput((1...2_500).map { "n.\($0)\n" }.joined())
        try #require(heard.wait(forCount: 2_500))
        bus.kill()
        try? posting.writeInput("n.2501\n")
        posting.closeInput()
        let result = try posting.wait()
        #expect(result.status == 69)
        let words = result.errorOutput.split(separator: " ")
        let line = try #require(words.count > 2 ? Int(words[2].dropLast()) : nil, "\(result.errorOutput)")
        #expect((2_001...2_501).contains(line))
        observation.cancel()
    }

    @Test(arguments: anyBusKind())
    func `-t bounds the wait for the input, and says which line did not come`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let result = try inTime {
            let posting = try start(productPath("notify-post"), ["--address", bus.address, "-t", "0.3", "-"])
            try? posting.writeInput("a\nb\n")
            return try posting.wait()
        } unless: {
            !$0.errorOutput.contains("line 3")
        }
        #expect(result.status == 2)
        #expect(
            result.errorOutput
                == "notify-post: line 3: standard input did not end in time; the lines before it were posted\n"
        )
    }

    @Test(arguments: anyBusKind())
    func `a post into a bus that does not read goes out when it reads again`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let waiting = try bus.startWaiting(["com.example.late"])
        let posting = try start(productPath("notify-post"), ["--address", bus.address, "-"])
        try posting.writeInput("com.example.other\n")
        bus.stop()
        try posting.writeInput(String(repeating: "com.example.other\n", count: 3_000) + "com.example.late\n")
        posting.closeInput()
        bus.resume()
        #expect(try posting.wait().status == 0)
        #expect(try waiting.wait().lines == ["com.example.late"])
    }
}
