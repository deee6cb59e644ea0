// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import MessageComparison
import TestSupport
import Testing

@testable import NotifyCore

/// How the stream from a bus is split into messages, and how posts are read in place.
@Suite struct MessageReaderTests {
    private func post(_ name: String, sender: String? = ":1.7") -> [UInt8] {
        var message = RawMessage(.signal)
        message.serial = 9
        message.path = "/org/notifybus"
        message.interface = "org.notifybus.n.com.example." + name
        message.member = "Posted"
        message.sender = sender
        message.signature = "s"
        message.body = RawBusClient.stringBody("com.example." + name)
        return message.bytes
    }

    private func call(bodyLength: Int) -> [UInt8] {
        var message = RawMessage(.call)
        message.serial = 3
        message.path = "/"
        message.member = "Do"
        message.signature = "ay"
        message.body =
            withUnsafeBytes(of: UInt32(bodyLength - 4).littleEndian) { Array($0) }
            + [UInt8](repeating: 7, count: bodyLength - 4)
        return message.bytes
    }

    /// The output for bytes that are fed through a socket in pieces.
    private func messages(_ bytes: [UInt8], pieces: (Int) -> Int) -> [[UInt8]?] {
        var pair: (Int32, Int32) = (-1, -1)
        withUnsafeMutableBytes(of: &pair) { pair in
            _ = socketpair(
                AF_UNIX,
                Int32(SOCK_STREAM.rawValue),
                0,
                pair.assumingMemoryBound(to: Int32.self).baseAddress
            )
        }
        let input = MessageReader()
        var hasEnded = false
        var found: [[UInt8]?] = []
        var offset = 0
        while offset < bytes.count || !hasEnded {
            if offset < bytes.count {
                let count = min(pieces(offset), bytes.count - offset)
                let sent = bytes.withUnsafeBytes { bytes in
                    send(pair.0, bytes.baseAddress.map { $0 + offset }, count, Int32(MSG_DONTWAIT))
                }
                if sent > 0 { offset += sent }
                if offset == bytes.count { close(pair.0) }
            }
            hasEnded = input.fill(from: pair.1) == 0 || hasEnded
            reading: while true {
                switch input.next() {
                case .message(let message): found.append(Array(message.bytes))
                case .passedOver: found.append(nil)
                case .nothing, .broken: break reading
                }
            }
        }
        close(pair.1)
        return found
    }

    @Test func `messages come out complete, wherever the stream is split`() {
        let all = [post("a"), call(bodyLength: 24), post("bb"), post("c-" + String(repeating: "x", count: 300))]
        let bytes = Array(all.joined())
        for tear in 1..<bytes.count {
            #expect(messages(bytes) { offset in offset < tear ? tear - offset : bytes.count } == all)
        }
        #expect(messages(bytes) { _ in 1 } == all)
    }

    /// A message that has every field.
    private func full(_ kind: RawMessage.Kind) -> RawMessage {
        var message = RawMessage(kind)
        message.serial = 9
        message.replySerial = 3
        (message.path, message.interface, message.member) = ("/a", "a.b", "C")
        (message.errorName, message.sender) = ("a.b.D", ":1.7")
        return message
    }

    /// Whether a message that has come whole is read.
    private func read(
        _ message: RawMessage,
        _ beginning: MessageReader.Beginning = .ofMessage,
        _ isRight: (BusMessage) -> Bool = { _ in true }
    ) -> Bool {
        let reader = MessageReader(beginning)
        message.bytes.withUnsafeBytes { reader.feed($0) }
        guard case .message(let message) = reader.next() else { return false }
        return isRight(message)
    }

    @Test func `a message that lacks what its kind needs is passed over`() {
        let needs: [(RawMessage.Kind, [PartialKeyPath<RawMessage>])] = [
            (.signal, [\RawMessage.path, \RawMessage.interface, \RawMessage.member]),
            (.call, [\RawMessage.path, \RawMessage.member]),
            (.reply, [\RawMessage.replySerial]), (.error, [\RawMessage.replySerial, \RawMessage.errorName]),
        ]
        let texts = [\RawMessage.path, \RawMessage.interface, \RawMessage.member, \RawMessage.errorName]
        for (kind, needed) in needs {
            #expect(read(full(kind)))
            for text in texts {
                var message = full(kind)
                message[keyPath: text] = nil
                #expect(read(message) == !needed.contains(text), "\(kind) \(text)")
            }
            var message = full(kind)
            message.replySerial = nil
            #expect(read(message) == !needed.contains(\RawMessage.replySerial), "\(kind)")
        }
    }

    /// A message with more fields. The first of them begins 8 bytes in, as each field does.
    private func bytes(_ message: RawMessage, moreFields: [UInt8]) -> [UInt8] {
        var bytes = message.bytes
        bytes += moreFields
        let length = UInt32(bytes.count - 16)
        bytes.replaceSubrange(12..<16, with: withUnsafeBytes(of: length.littleEndian) { Array($0) })
        return bytes + [UInt8](repeating: 0, count: -bytes.count & 7)
    }

    private func first(_ bytes: [UInt8], _ isRight: (BusMessage) -> Bool = { _ in true }) -> Bool {
        let reader = MessageReader()
        bytes.withUnsafeBytes { reader.feed($0) }
        guard case .message(let message) = reader.next() else { return false }
        return isRight(message)
    }

    @Test func `an unknown field may have any value, and what follows it is read`() {
        var message = full(.signal)
        message.sender = nil
        let sender: [UInt8] = [7, 1, 115, 0, 4, 0, 0, 0] + Array(":1.7".utf8) + [0]
        let unknown: [[UInt8]] = [
            [10, 1, 117, 0, 7, 0, 0, 0], [255, 1, 121, 0, 7, 0, 0, 0],
            [10, 2, 97, 121, 0, 0, 0, 0, 3, 0, 0, 0, 1, 2, 3, 0],
            [10, 4, 40, 121, 117, 41, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0],
        ]
        for field in unknown {
            #expect(
                first(bytes(message, moreFields: field + sender)) { $0.hasUnknownFields && !$0.isFromBus },
                "\(field)"
            )
        }
        // The known ones have their types, there is no field 0, and a value has the type that is announced.
        for field in [[7, 1, 117, 0, 7, 0, 0, 0], [0, 1, 117, 0, 7, 0, 0, 0], [10, 1, 63, 0, 7, 0, 0, 0]] as [[UInt8]] {
            #expect(!first(bytes(message, moreFields: field)), "\(field)")
        }
        #expect(first(bytes(message, moreFields: sender)) { !$0.hasUnknownFields && !$0.isFromBus })
    }

    @Test func `the fields end with the last one, not with what fills the space after it`() {
        for count in 1...7 {
            var message = full(.signal)
            // The sender is then the last one.
            (message.replySerial, message.sender) = (nil, String(repeating: "x", count: count))
            var bytes = message.bytes
            let space = -Int(bytes[12]) & 7
            #expect(first(bytes))
            for _ in 0..<space {
                bytes[12] += 1
                #expect(!first(bytes), "\(count)")
            }
        }
    }

    @Test func `in a stream that begins anywhere, what no bus lets through is no message`() {
        let changes: [(inout RawMessage) -> Void] = [
            { $0.sender = nil }, { $0.sender = "" }, { $0.path = "a" }, { $0.path = "" }, { $0.member = "" },
        ]
        for kind: RawMessage.Kind in [.signal, .call] {
            #expect(read(full(kind), .anywhere))
            for (number, change) in changes.enumerated() {
                var message = full(kind)
                change(&message)
                #expect(!read(message, .anywhere), "\(kind) \(number)")
            }
        }
    }

    @Test func `only the bus, or who is at the other end without one, is taken for the bus`() {
        for (sender, isBus): (String?, Bool) in [(nil, true), ("org.freedesktop.DBus", true), (":1.7", false)] {
            var message = full(.error)
            message.sender = sender
            #expect(read(message) { $0.isFromBus == isBus })
        }
    }

    @Test func `a number is one if nothing comes after it`() {
        for (signature, body, number): (String, [UInt8], UInt64?) in [
            ("u", [7, 0, 0, 0], 7), ("t", [7, 0, 0, 0, 0, 0, 0, 1], 1 << 56 | 7), ("i", [7, 0, 0, 0], nil),
            ("u", [7, 0, 0, 0, 0], nil), ("u", [7, 0, 0], nil), ("uu", [7, 0, 0, 0, 7, 0, 0, 0], nil),
        ] {
            var message = full(.reply)
            (message.signature, message.body) = (signature, body)
            #expect(read(message) { $0.number == number }, "\(signature) \(body)")
        }
    }

    @Test func `an end that comes after nothing was available is the end`() {
        var pair: (Int32, Int32) = (-1, -1)
        withUnsafeMutableBytes(of: &pair) { pair in
            _ = socketpair(
                AF_UNIX,
                Int32(SOCK_STREAM.rawValue),
                0,
                pair.assumingMemoryBound(to: Int32.self).baseAddress
            )
        }
        defer { close(pair.1) }
        let reader = MessageReader()
        #expect(reader.fill(from: pair.1) == nil)
        close(pair.0)
        #expect(reader.fill(from: pair.1) == 0)
    }

    @Test func `a message that needs more room gets it, and a signal that is too long is skipped`() {
        var signal = post("big")
        signal.replaceSubrange(4..<8, with: withUnsafeBytes(of: UInt32(1_000_000).littleEndian) { Array($0) })
        let head = (16 + Int(signal[12]) + Int(signal[13]) << 8 + 7) & ~7
        signal = Array(signal[..<head]) + [UInt8](repeating: 1, count: 1_000_000)
        let large = call(bodyLength: 500_000)
        let all: [[UInt8]?] = [post("a"), large, nil, post("b"), large, post("c")]
        let bytes = Array([post("a"), large, signal, post("b"), large, post("c")].joined())
        var generator = SeededGenerator(seed: 5)
        for longest in [1_000, 40_000, 1_000_000] {
            #expect(messages(bytes) { _ in Int.random(in: 1...longest, using: &generator) } == all)
        }
    }

    @Test func `the room for a message that needed more is given up after it`() {
        let reader = MessageReader()
        post("a").withUnsafeBytes { reader.feed($0) }
        let usual = reader.capacity
        call(bodyLength: 500_000).withUnsafeBytes { reader.feed($0) }
        guard case .message = reader.next(), case .message = reader.next() else {
            return #expect(Bool(false))
        }
        #expect(reader.capacity > 500_000)
        post("b").withUnsafeBytes { reader.feed($0) }
        #expect(reader.capacity == usual)
    }

    @Test func `at the end of a stream, what hid behind the beginning of a message is found`() {
        let reader = MessageReader(.anywhere)
        var torn = post("a")
        // It announces more than comes.
        torn.replaceSubrange(4..<8, with: withUnsafeBytes(of: UInt32(2_000).littleEndian) { Array($0) })
        (torn + post("b")).withUnsafeBytes { reader.feed($0) }
        guard case .nothing = reader.next() else { return #expect(Bool(false)) }
        reader.finish()
        guard case .message(let message) = reader.next() else { return #expect(Bool(false)) }
        #expect(Array(message.bytes) == post("b"))
    }

    /// The beginning of a call, which says how long it is.
    private func beginning(ofCallOf length: Int) -> [UInt8] {
        var bytes = call(bodyLength: 24)
        bytes.replaceSubrange(4..<8, with: withUnsafeBytes(of: UInt32(length).littleEndian) { Array($0) })
        return bytes
    }

    @Test func `a message takes memory for what has arrived, whatever length it announces`() {
        let reader = MessageReader()
        let start = beginning(ofCallOf: MessageReader.longestCall - 1_024)
        start.withUnsafeBytes { reader.feed($0) }
        var fed = start.count
        let piece = [UInt8](repeating: 7, count: 30_000)
        for _ in 0..<100 {
            guard case .nothing = reader.next() else { Issue.record("it is complete"); return }
            piece.withUnsafeBytes { reader.feed($0) }
            fed += piece.count
            #expect(reader.capacity <= 2 * fed + 32_768)
        }
    }

    @Test func `a message whose header is not valid is not kept, however long it is`() {
        let reader = MessageReader()
        var start = beginning(ofCallOf: 20_000_000)
        // A call without a member.
        start.replaceSubrange(8..<12, with: [0, 0, 0, 0])
        start.withUnsafeBytes { reader.feed($0) }
        guard case .passedOver = reader.next() else { Issue.record("it is kept"); return }
        let piece = [UInt8](repeating: 7, count: 1_000_000)
        for _ in 0..<19 {
            piece.withUnsafeBytes { reader.feed($0) }
            guard case .nothing = reader.next() else { Issue.record("something is found in it"); return }
            #expect(reader.capacity <= piece.count + 32_768)
        }
    }

    @Test func `a call that is too long is answered, and skipped`() {
        let reader = MessageReader()
        let length = MessageReader.longestCall
        var bytes = beginning(ofCallOf: length)
        bytes.withUnsafeBytes { reader.feed($0) }
        guard case .message(let call) = reader.next() else { Issue.record("it is kept"); return }
        #expect(call.kind == .longCall && call.serial == 3 && call.wantsReply)
        var left = length - 24
        bytes = [UInt8](repeating: 7, count: 1_000_000)
        while left > 0 {
            bytes.prefix(left).withUnsafeBytes { reader.feed($0) }
            left -= min(left, bytes.count)
            guard case .nothing = reader.next() else { Issue.record("something is found in it"); return }
            #expect(reader.capacity <= bytes.count + 32_768)
        }
        post("a").withUnsafeBytes { reader.feed($0) }
        guard case .message(let next) = reader.next() else { Issue.record("the next message is lost"); return }
        #expect(Array(next.bytes) == post("a"))
    }

    @Test func `a message that has come whole may be looked at before it is taken`() {
        let reader = MessageReader()
        let (first, second) = (post("a"), post("b"))
        #expect(reader.peek() == nil)
        first[..<20].withUnsafeBytes { reader.feed($0) }
        #expect(reader.peek() == nil)
        (first[20...] + second).withUnsafeBytes { reader.feed($0) }
        for expected in [first, second] {
            guard let bytes = reader.peek() else { Issue.record("it is not seen"); return }
            #expect(Array(bytes) == expected)
            reader.passOver(bytes)
        }
        #expect(reader.peek() == nil)
        // The rest of a signal that is too long is none, whatever is in it.
        var long = post("c")
        long.replaceSubrange(4..<8, with: withUnsafeBytes(of: UInt32(100_000).littleEndian) { Array($0) })
        long.withUnsafeBytes { reader.feed($0) }
        guard case .passedOver = reader.next() else { Issue.record("it is kept"); return }
        first.withUnsafeBytes { reader.feed($0) }
        #expect(reader.peek() == nil)
        // Where a stream begins anywhere, it might be something else.
        let other = MessageReader(.anywhere)
        first.withUnsafeBytes { other.feed($0) }
        #expect(other.peek() == nil)
    }

    @Test func `few bytes may begin a message, whatever lies behind them`() {
        /// Whether these bytes are kept where a stream may begin anywhere.
        func mayBegin(_ bytes: ArraySlice<UInt8>) -> Bool {
            let reader = MessageReader(.anywhere)
            let before: [UInt8] = [0xff, 0xff, 0xff, 0xff]
            before.withUnsafeBytes { reader.feed($0) }
            guard case .nothing = reader.next(), reader.fragment == before else { return false }
            bytes.withUnsafeBytes { reader.feed($0) }
            if case .nothing = reader.next() { return reader.fragment == before }
            return false
        }
        for count in 0..<4 {
            var bytes: [UInt8] = [UInt8(ascii: "l"), 1, 0, 1]
            #expect(mayBegin(bytes[...]))
            bytes[count] = 0xff
            #expect(mayBegin(bytes[..<count]))
            #expect(!mayBegin(bytes[...count]))
        }
    }

    @Test func `nothing is found in data that is not a message`() {
        for start in [[0], Array("hello, world, this is no message".utf8), Array(post("a")[..<3]) + [9]] as [[UInt8]] {
            #expect(messages(start + post("a")) { _ in 100 } == [])
        }
        var long = post("a")
        long.replaceSubrange(12..<16, with: [255, 255, 255, 255])
        #expect(messages(long) { _ in 100 } == [])
    }

    @Test func `messages that libdbus accepts are read the same way, and no post that libdbus refuses is accepted`() {
        var generator = SeededGenerator(seed: 11)
        let originals = [post("real"), post("real", sender: nil), post("x"), call(bodyLength: 24), registration()]
        for round in 0..<25_000 {
            var bytes = originals[round % originals.count]
            // Few bytes are changed at random, because most changes make a message invalid.
            for _ in 0..<(round / originals.count % 4) {
                bytes[Int.random(in: 0..<bytes.count, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
            }
            #expect(bytes.withUnsafeBytes { MessageComparison.fault(in: $0) } == nil)
        }
    }

    /// A call with arguments of many types: (a{sv}h), the dictionary with a string, strings and a descriptor.
    private func registration() -> [UInt8] {
        let values: [BusValue] = [
            .dictionary([("program", .string("x")), ("names", .strings(["a", "bb"])), ("n", .uint64(7))]),
            .structure([.number(code: UInt8(ascii: "y"), 3), .double(0.5), .boolean(true)]), .variant(.strings([])),
        ]
        let call = OutgoingMessage.call(
            ":1.1",
            path: "/x",
            interface: "org.example.x",
            member: "Register",
            values,
            activates: false
        )
        return call.bytes(serial: 5) ?? []
    }

    @Test func `a reader gives back what it has occupied`() async {
        // Measured in a process of its own.
        await #expect(processExitsWith: .success) {
            let bytes = [UInt8](repeating: 0, count: 1 << 20)
            for _ in 0..<256 {
                let reader = MessageReader()
                for _ in 0..<2 { bytes.withUnsafeBytes { reader.feed($0) } }
            }
            // Not by getrusage(2), whose peak may be that of the process which started this one.
            exit(peakResidentBytes(of: getpid()) < 160 << 20 ? 0 : 2)
        }
    }

    @Test func `the descriptors of a message that is passed over are closed at once`() async {
        // Counted in a process of its own.
        await #expect(processExitsWith: .success) {
            guard let pair = SocketPair() else { exit(1) }
            var stream = DescriptorStream(pair.left)
            let before = openSockets()
            guard stream.send(serial: 1, descriptors: 2, in: 9_999) != nil, openSockets() == before else { exit(2) }
            let reader = MessageReader(takesDescriptors: true)
            guard reader.fill(from: pair.right) ?? 0 > 0, openSockets() == before + 2 else { exit(3) }
            guard let message = reader.peek() else { exit(4) }
            reader.passOver(message)
            exit(openSockets() == before ? 0 : 5)
        }
    }

    @Test func `descriptors stay with their messages, and unclaimed ones are closed`() async {
        // Counted in a process of its own.
        await #expect(processExitsWith: .success) {
            var generator = SeededGenerator(seed: 3)
            let before = openSockets()
            for round in 0..<200 {
                guard let pair = SocketPair() else { exit(1) }
                // What was sent: the descriptors' inodes, by serial.
                var sent: [UInt32: [UInt64]] = [:]
                var stream = DescriptorStream(pair.left)
                for serial in 1...UInt32(12) {
                    let count = Int.random(in: 0...3, using: &generator) * (serial % 3 == 0 ? 0 : 1)
                    guard let inodes = stream.send(serial: serial, descriptors: count, in: round % 4 == 3 ? 7 : 9_999)
                    else { exit(2) }
                    sent[serial] = inodes
                }
                pair.hangUpLeft()
                let reader = MessageReader(takesDescriptors: true)
                var seen: UInt32 = 0
                while reader.fill(from: pair.right) != 0 {
                    reading: while true {
                        switch reader.next() {
                        case .message(let message):
                            seen += 1
                            guard message.serial == seen else { exit(3) }
                            // Every fourth one is unchanged.
                            if message.serial % 4 == 0 { continue }
                            let descriptors = message.descriptors ?? MessageDescriptors([])
                            let found = (0..<message.descriptorCount).map { descriptors.take($0) }
                            guard found.map(inode) == sent[message.serial] else { exit(4) }
                            if let first = found.first {
                                // A repeated descriptor is a duplicate, and an excess one is missing.
                                let again = descriptors.take(0)
                                guard again != first, inode(again) == inode(first) else { exit(5) }
                                guard descriptors.take(message.descriptorCount) == -1 else { exit(6) }
                                close(again)
                            }
                            found.forEach { close($0) }
                        case .passedOver: exit(7)
                        case .nothing, .broken: break reading
                        }
                    }
                }
                guard seen == 12 else { exit(8) }
                pair.close()
            }
            guard openSockets() == before else { exit(9) }
            exit(0)
        }
    }

    @Test func `a program out of descriptors gets the messages, and no message gets another's descriptors`() async {
        await #expect(processExitsWith: .success) {
            guard let pair = SocketPair() else { exit(1) }
            var stream = DescriptorStream(pair.left)
            var sent: [UInt32: [UInt64]] = [:]
            for serial in 1...UInt32(4) { sent[serial] = stream.send(serial: serial, descriptors: 3, in: 9_999) }
            pair.hangUpLeft()
            // Room for four: the first message gets its three, the second one of three. The testing library may open or
            // close descriptors in the meantime.
            let free = (0..<1_024).filter { fcntl($0, F_GETFD) < 0 }
            var limit = rlimit(rlim_cur: rlim_t(free[4]), rlim_max: 1_024)
            guard setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { exit(2) }
            let reader = MessageReader(takesDescriptors: true)
            var kept: [Int32] = []
            var counts: [Int] = []
            while reader.fill(from: pair.right) != 0 {
                while case .message(let message) = reader.next() {
                    let descriptors = message.descriptors ?? MessageDescriptors([])
                    let found = (0..<message.descriptorCount).map { descriptors.take($0) }.filter { $0 >= 0 }
                    guard let all = sent[message.serial], found.map(inode).elementsEqual(all.prefix(found.count)) else {
                        exit(3)
                    }
                    counts.append(found.count)
                    kept += found
                    // From the third message on there is room again.
                    if message.serial == 2 {
                        kept.forEach { close($0) }
                        kept = []
                    }
                }
            }
            guard counts.count == 4, counts[1] < 3, counts[2] > 0, counts[3] < 3 else { exit(4) }
            exit(0)
        }
    }
}

private struct SocketPair {
    let left: Int32
    let right: Int32

    init?() {
        var pair: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0 else { return nil }
        (left, right) = (pair[0], pair[1])
    }

    func hangUpLeft() { shutdown(left, Int32(SHUT_WR)) }

    func close() {
        Glibc.close(left)
        Glibc.close(right)
    }
}

/// Sends messages with descriptors, as a bus does: with the first byte of each message.
private struct DescriptorStream {
    private let socket: Int32

    init(_ socket: Int32) { self.socket = socket }

    /// - Returns: the inodes of the descriptors sent along; nil if sending failed.
    mutating func send(serial: UInt32, descriptors count: Int, in piece: Int) -> [UInt64]? {
        let descriptors = (0..<count).map { _ in Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0) }
        defer { descriptors.forEach { close($0) } }
        let signal = OutgoingMessage.signal(
            path: "/x",
            interface: "org.x.x",
            member: "X",
            descriptors.map { .descriptor($0) }
        )
        guard let bytes = signal.bytes(serial: serial) else { return nil }
        var offset = 0
        while offset < bytes.count {
            let sent = bytes.withUnsafeBytes { bytes in
                guard let start = bytes.baseAddress else { return 0 }
                let length = min(bytes.count - offset, piece)
                return linux_send(socket, start + offset, length, descriptors, offset == 0 ? Int32(count) : 0)
            }
            guard sent > 0 else { return nil }
            offset += sent
        }
        return descriptors.map(inode)
    }
}

private func inode(_ descriptor: Int32) -> UInt64 {
    var status = stat()
    return fstat(descriptor, &status) == 0 ? UInt64(status.st_ino) : 0
}

/// The number of sockets of this process; the testing library may change its other descriptors at any time.
private func openSockets() -> Int {
    (Int32(0)..<1_024).count { descriptor in
        var status = stat()
        return fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFSOCK
    }
}
