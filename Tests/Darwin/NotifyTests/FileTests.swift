// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import NotifyTokens
import TestSupport
import Testing

/// Monitored files.
@Suite
struct FileTests {
    let folder: String

    init() throws {
        var template = Array("/tmp/notifybus-files-XXXXXX".utf8CString)
        try #require(mkdtemp(&template) != nil)
        folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    private func contents(_ path: String) -> String { (try? readFile(path)) ?? "" }

    private func shell(_ script: String) throws {
        let result = try run("sh", ["-c", "cd \(folder) && \(script)"])
        try #require(result.status == 0, "\(result.errorOutput)")
    }

    private static let steps: [(script: String, posts: Int)] = [
        (": >file", 1), ("echo a >>file", 1), ("cat file >/dev/null; chmod 600 file", 0), ("echo b >file", 1),
        (": >file", 1), ("echo c >file", 1), ("echo d >other", 0), ("mv other file", 1), ("rm file", 1),
        ("ln -s other file", 1),
    ]

    /// How often a token was notified of each step.
    private func notifications(_ kind: BusKind) throws -> [Int] {
        let room = try NotifyRoom(kind)
        let heard = Counter()
        let token = try room.register("com.example.file", .queue { _ in heard.add() })
        try shell("rm -f file other fence; touch neutral")
        try room.engine.monitorFile(token, path: folder + "/file")
        // A second file, to prove what did not arrive.
        let fences = Counter()
        let fence = try room.register("com.example.fence", .queue { _ in fences.add() })
        try room.engine.monitorFile(fence, path: folder + "/fence")
        func count(_ script: String, atLeast posts: Int) throws -> Int {
            let (before, fencesBefore) = (heard.value, fences.value)
            try shell(script)
            #expect(heard.wait(for: before + posts), "\(script)")
            try shell("mv neutral fence; touch neutral")
            #expect(fences.wait(for: fencesBefore + 1))
            return heard.value - before
        }
        var counts = try FileTests.steps.map { try count($0.script, atLeast: $0.posts) }
        try room.engine.cancel(token)
        counts.append(try count("rm file; echo e >file", atLeast: 0))
        return counts
    }

    @Test(arguments: anyBusKind())
    func `each creation, write and removal is notified once, to the token only`(kind: BusKind) throws {
        defer { _ = try? run("rm", ["-r", folder]) }
        let expected = FileTests.steps.map(\.posts) + [0]
        // A file that is emptied and written within 50 ms was written once. A busy machine may take longer.
        var counts: [Int] = []
        let isExact = try waitUntil {
            counts = try notifications(kind)
            return counts == expected
        }
        #expect(isExact, "\(counts)")
    }

    @Test(arguments: anyBusKind())
    func `a path that is not UTF-8 is refused, and two dots lead one folder up, whatever its name`(kind: BusKind) throws
    {
        defer { _ = try? run("rm", ["-r", folder]) }
        let room = try NotifyRoom(kind)
        let heard = Counter()
        let token = try room.register("com.example.file", .queue { _ in heard.add() })
        try shell("mkdir sub; ln -s \"$(printf 'caf\\351')\" sub/link")
        let latin = Array((folder + "/caf").utf8CString.dropLast()) + [CChar(bitPattern: 0xE9), 0]
        #expect(status { try room.engine.monitorFile(token, path: latin) } == .invalidFile)
        #expect(status { try room.engine.monitorFile(token, path: folder + "/sub/link") } == .invalidFile)
        // Together with the slash, the accent is one character.
        try shell("mkdir sub/\u{301}x")
        try room.engine.monitorFile(token, path: folder + "/sub/\u{301}x/../file")
        try shell(": >sub/file")
        #expect(heard.wait(for: 1))
    }

    @Test(arguments: anyBusKind())
    func `several tokens of one name that monitor one file are notified once each, and an observer of the name is not`(
        kind: BusKind
    ) throws {
        defer { _ = try? run("rm", ["-r", folder]) }
        let room = try NotifyRoom(kind)
        let (observer, observed) = try room.registerPipe("com.example.file")
        let stranger = Counter()
        let observation = try room.other.addObserver(for: "com.example.file", timeout: .seconds(25)) { _ in
            stranger.add()
        }
        defer { observation.cancel() }
        let told = Recorder<Int32>()
        let monitors = try (0..<5).map { _ in
            try room.register("com.example.file", .queue { told.append($0.token) })
        }
        for token in monitors + [observer] { _ = room.engine.check(token) }
        for token in monitors { try room.engine.monitorFile(token, path: folder + "/file") }
        try shell(": >file")
        #expect(told.wait(forCount: 5))
        #expect(monitors.allSatisfy { room.engine.check($0) == true && room.engine.check($0) == false })
        try room.settle()
        #expect(Set(told.elements) == Set(monitors) && told.count == 5)
        #expect(room.engine.check(observer) == false && tokens(in: observed).isEmpty && stranger.value == 0)
    }

    @Test func `invalid files are refused`() throws {
        defer { _ = try? run("rm", ["-r", folder]) }
        let room = try NotifyRoom(.daemon)
        let token = try room.register("com.example.file")
        let own = try room.register("self.file")
        #expect(status { try room.engine.monitorFile(token, path: nil) } == .invalidRequest)
        #expect(status { try room.engine.monitorFile(own, path: folder + "/file") } == .invalidRequest)
        #expect(status { try room.engine.monitorFile(99_999, path: folder + "/file") } == .invalidToken)
        #expect(status { try room.engine.monitorFile(token, path: folder + "/") } == .invalidFile)
        #expect(status { try room.engine.monitorFile(token, path: folder + "/file") } == .ok)
        #expect(status { try room.engine.monitorFile(token, path: folder + "/file2") } == .invalidRequest)
    }

    @Test func `a file that can't be followed for want of descriptors is refused`() async {
        await #expect(processExitsWith: .success) {
            let tests = try FileTests()
            defer { _ = try? run("rm", ["-r", tests.folder]) }
            let room = try NotifyRoom(.daemon)
            var refused = 0
            for extra in 0..<4 as Range<rlim_t> {
                let token = try room.register("com.example.file")
                _ = room.engine.check(token)
                let lowest = dup(0)
                close(lowest)
                var before = rlimit()
                getrlimit(__rlimit_resource_t(7), &before)
                var limit = rlimit(rlim_cur: rlim_t(lowest) + extra, rlim_max: before.rlim_max)
                setrlimit(__rlimit_resource_t(7), &limit)
                let result = status { try room.engine.monitorFile(token, path: tests.folder + "/file") }
                setrlimit(__rlimit_resource_t(7), &before)
                if result == .ok {
                    try tests.shell(": >file")
                    #expect(waitUntil { room.engine.check(token) == true })
                } else {
                    refused += 1
                }
                try room.engine.cancel(token)
                #expect(waitUntil { room.engine.isAtRest })
            }
            #expect(refused >= 2)
        }
    }

    @Test(arguments: anyBusKind())
    func `a file is found through links and folders that appear later, and each is notified once`(kind: BusKind)
        throws
    {
        defer { _ = try? run("rm", ["-r", folder]) }
        let room = try NotifyRoom(kind)
        let heard = Counter()
        try shell("mkdir zones; echo a >zones/a; echo b >zones/b; ln -s zones/a localtime; ln -s zones linked")
        func monitor(_ path: String) throws {
            let token = try room.register("com.example.\(path)", .queue { _ in heard.add() })
            try room.engine.monitorFile(token, path: folder + "/" + path)
        }
        var count = 0
        func expect(_ script: String) throws {
            count += 1
            try shell(script)
            #expect(heard.wait(for: count), "\(script)")
        }
        try monitor("localtime")
        // As timedated does it: a new link, renamed over the old one.
        for zone in ["b", "a", "b"] { try expect("ln -s zones/\(zone) .new; mv -T .new localtime") }
        try expect("echo c >>zones/b")
        // A link to a folder within the path.
        try monitor("linked/later")
        try expect("mkdir other; echo d >other/later; ln -s other .new; mv -T .new linked")
        // Missing folders.
        try monitor("one/two/three/file")
        try shell("mkdir -p one/two/three")
        try expect(": >one/two/three/file")
        try expect("mv one gone")
        try expect("mkdir -p new/two/three; : >new/two/three/file; mv new one")
        try expect("echo e >>one/two/three/file")
        // A duplicate would have arrived by now.
        #expect(heard.value == count)
    }

    @Test(arguments: anyBusKind())
    func `a folder is notified of creations, removals and writes in it`(kind: BusKind) throws {
        defer { _ = try? run("rm", ["-r", folder]) }
        let room = try NotifyRoom(kind)
        let heard = Counter()
        try shell("mkdir -p spool/deep")
        let token = try room.register("com.example.spool", .queue { _ in heard.add() })
        try room.engine.monitorFile(token, path: folder + "/spool")
        var count = 0
        for script in [
            ": >spool/a", "echo x >>spool/a", "mv spool/a spool/deep/a", "rmdir spool/deep || mv spool/deep .",
        ] {
            count += 1
            try shell(script)
            #expect(heard.wait(for: count), "\(script)")
        }
        #expect(heard.value == count)
    }

    @Test(arguments: anyBusKind())
    func `a file that is replaced continuously is notified at most 21 times a second, and after the last time`(
        kind: BusKind
    ) throws {
        defer { _ = try? run("rm", ["-r", folder]) }
        let room = try NotifyRoom(kind)
        let path = folder + "/file"
        // The inode number at the time of the notification.
        let heard = Recorder<UInt64>()
        @Sendable func inode() -> UInt64 {
            var status = Glibc.stat()
            return lstat(path, &status) == 0 ? UInt64(status.st_ino) : 0
        }
        let token = try room.register("com.example.storm", .queue { _ in heard.append(inode()) })
        try room.engine.monitorFile(token, path: path)
        let began = ContinuousClock.now
        for _ in 0..<4_000 {
            close(open(folder + "/.new", O_WRONLY | O_CREAT | O_CLOEXEC, 0o600))
            try #require(rename(folder + "/.new", path) == 0)
        }
        let last = inode()
        // Each of the 20,000 events is slow under a sanitizer.
        #expect(waitUntil(timeout: .patience) { heard.elements.last == last })
        let time = ContinuousClock.now - began
        #expect(heard.count <= 21 + Int(time / .milliseconds(50)))
    }

    @Test func `a quick write is told once, however late it is read`() throws {
        defer { _ = try? run("rm", ["-r", folder]) }
        try shell("echo before >file")
        var monitors = try FileMonitors()
        var told: [FileMonitors.Change] = []
        #expect(monitors.add(1, path: folder + "/file") == nil)
        // It is emptied, and written and closed before the reader goes on, which takes longer than a writer may.
        let writer = open(folder + "/file", O_WRONLY | O_TRUNC | O_CLOEXEC)
        told += monitors.takeChanges()
        let deadline = try #require(monitors.deadline)
        #expect(write(writer, "after", 5) == 5)
        close(writer)
        #expect(waitUntil { .now > deadline })
        told += monitors.takeChanges()
        #expect(told == [.changed(1)])
        #expect(
            waitUntil {
                told += monitors.takeChanges()
                return monitors.deadline == nil
            }
        )
        #expect(told == [.changed(1)])
    }

    @Test func `a queue that overflows is told once for each file`() throws {
        defer { _ = try? run("rm", ["-r", folder]) }
        try shell("mkdir a b; : >a/file; : >b/file")
        var monitors = try FileMonitors()
        var values = [0, 0]
        func take() {
            for case .changed(let number) in monitors.takeChanges() { values[number] += 1 }
        }
        for (number, name) in ["a", "b"].enumerated() {
            #expect(monitors.add(number, path: "\(folder)/\(name)/file") == nil)
        }
        let limit = try #require(Int(contents("/proc/sys/fs/inotify/max_queued_events").filter(\.isNumber)))
        // Equal events that follow each other are one; each of these is two that differ.
        for _ in 0...limit / 2 {
            for name in ["x", "y"] { close(open("\(folder)/a/\(name)", O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)) }
            for name in ["x", "y"] { unlink("\(folder)/a/\(name)") }
        }
        var request = pollfd(fd: monitors.descriptor, events: Int16(POLLIN), revents: 0)
        while poll(&request, 1, 0) > 0 { take() }
        #expect(monitors.deadline == nil)
        #expect(values == [1, 1])
        // They are followed as before.
        try shell("echo x >>b/file; rm a/file")
        #expect(
            waitUntil {
                take()
                return values == [2, 2]
            }
        )
    }

    @Test func `attributes of what is in a folder count only for who heeds them`() throws {
        defer { _ = try? run("rm", ["-r", folder]) }
        try shell("mkdir spool; : >spool/file")
        var monitors = try FileMonitors()
        #expect(monitors.add(1, path: folder + "/spool", heedsAttributes: true) == nil)
        #expect(monitors.add(2, path: folder + "/spool") == nil)
        try shell("chmod 600 spool/file")
        let changes = monitors.takeChanges()
        #expect(changes == [.changed(1)])
    }

    @Test(arguments: anyBusKind())
    func `a hard link written by its other name is notified once for each change`(kind: BusKind) throws {
        defer { _ = try? run("rm", ["-r", folder]) }
        try shell("mkdir elsewhere; : >elsewhere/one; ln elsewhere/one one; : >two; : >three")
        let room = try NotifyRoom(kind)
        let names = ["one", "two", "three"]
        let heard = names.map { _ in Counter() }
        for (name, counter) in zip(names, heard) {
            let token = try room.register("com.example.\(name)", .queue { _ in counter.add() })
            try room.engine.monitorFile(token, path: "\(folder)/\(name)")
        }
        // The first has another name already, and the second gets one.
        try shell("ln two elsewhere/two")
        for round in 1...3 {
            for (index, name) in names.prefix(2).enumerated() {
                try shell("echo \(round) >>elsewhere/\(name)")
                #expect(heard[index].wait(for: round), "\(name)")
            }
            // Of what happens to this one nothing came before.
            try shell("echo \(round) >>three")
            #expect(heard[2].wait(for: round))
            #expect(heard.map(\.value) == [round, round, round])
        }
    }

    /// vim moves the file away, writes a new one and removes the old one; others rename a new one over it.
    @Test(
        .enabled(if: isInstalled("vim"), "vim is not installed"),
        arguments: ["set backupcopy=no", "set backupcopy=yes", "set nowritebackup"]
    )
    func `what vim has saved is heard`(setting: String) throws {
        defer { _ = try? run("rm", ["-r", folder]) }
        let room = try NotifyRoom(.daemon)
        let path = folder + "/file"
        let heard = Recorder<String>()
        let token = try room.register("com.example.file", .queue { _ in heard.append(contents(path)) })
        try shell("echo one >file")
        try room.engine.monitorFile(token, path: path)
        for word in ["two", "three"] {
            try shell("vim -es -u NONE -c '\(setting)' -c '%s/.*/\(word)/' -c 'wq' file </dev/null")
            #expect(contents(path) == word + "\n")
            #expect(waitUntil { heard.elements.last == word + "\n" })
        }
    }
}
