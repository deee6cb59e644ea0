// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import NotifyTokens
import TestSupport
import Testing

/// The pages that list differences from Apple's systems, row by row.
@Suite struct DifferenceTests {
    /// The first cell of each row begins with one of these, and these tests fail when the row isn't true.
    private static let darwin: [(row: String, tests: [String])] = [
        ("Names are global to the machine.", ["NOTIFYBUS_ADDRESS selects another bus"]),
        ("`notifyd` is always running.", ["without a bus the status says so, and self names work"]),
        (
            "For a name that belongs to someone else,",
            ["anyone may observe a name that only its owner may post", "names of other users cannot be posted"]
        ),
        ("Names longer than 511 bytes", ["invalid names are refused"]),
        ("`com.apple.system.` belongs to root", ["on a session bus anyone may post a reserved name"]),
        ("`notify_resume` ends any number", ["a suspended token is notified once, after as many resumes as suspends"]),
        ("Tokens of one name that are registered", ["each kind of token has its own history"]),
        ("A signal that does not exist", ["a signal that does not exist can be registered, and is not sent"]),
        (
            "`notify_peek` gives every process",
            [
                "each process counts for itself what is posted",
                "only a token for checks can be peeked at, or one whose name stays in the process",
            ]
        ),
        ("`notify_check` may report a post", ["the first check says yes, and each token has its own history"]),
        ("`notify_check` sees a post as soon", ["a check sees this process's earlier posts, every time and once"]),
        ("`notifyd` notifies a process's own tokens.", ["a post has notified the poster's tokens when it returns"]),
        ("A process that was not scheduled", ["in the background a check sees nothing"]),
        ("`notifyd` keeps states.", ["states survive the agent", "without an agent the status says so"]),
        ("A state is forgotten with the last", ["a state exists as long as any registration of its name"]),
        (
            "Only root may call `notify_suspend_pid`",
            [
                "a process is suspended by its id, and each token is notified once on resume",
                "a token's own suspension outlives that of its process",
            ]
        ),
        (
            "A descriptor's pipe may block",
            ["a descriptor that nobody reads loses no token, and holds nobody up"]
        ),
        ("A process that does not read", ["4,096 notifications are queued for each registration"]),
        (
            "500 registrations of one name",
            ["many registrations of one name are all notified by one post"]
        ),
        ("Descriptors are inherited across exec.", ["descriptors are closed on exec"]),
        (
            "`notify_register_mach_port`",
            [
                "the compiler refuses Mach ports, with the reason",
                "a program that declares the functions itself links them and imports nothing",
            ]
        ),
        ("`notify_register_dispatch` with a name that is NULL", ["no function needs a name to return"]),
        (
            "`notify_register_dispatch` always works.",
            [
                "without libdispatch notify_register_dispatch says so, and everything else works",
                "blocks run on dispatch queues, and may cancel their own token",
                "a closure on the main queue, which ends its own registration",
            ]
        ),
        (
            "C code needs blocks and a queue",
            [
                "a callback runs on the library's thread, may call everything, and is over when notify_cancel returns",
                "the headers compile without a warning",
            ]
        ),
        (
            "A Swift closure that is passed",
            ["what is no block is refused, such as a Swift closure in a declaration by hand"]
        ),
        (
            "The handler is a block in Swift too.",
            [
                "a closure on the main queue, which ends its own registration",
                "a program that declares the functions itself links them and imports nothing",
            ]
        ),
        (
            "After `fork` in a program",
            ["a child learns that it is disconnected, takes nothing from its parent, and can execute a program"]
        ),
        (
            "`notify_monitor_file` follows the vnode",
            [
                "attributes of what is in a folder count only for who heeds them",
                "each creation, write and removal is notified once, to the token only",
                "a file is found through links and folders that appear later, and each is notified once",
            ]
        ),
        (
            "A change of a file notifies every token",
            [
                "several tokens of one name that monitor one file are notified once each, and an observer of the name is"
                    + " not"
            ]
        ),
        ("`notify_set_options(NOTIFY_OPT_DISPATCH)`", ["options without an effect have none"]),
        ("`NOTIFY_OPT_FILTERED`", ["options without an effect have none"]),
        (
            "`notify_simple_post`",
            ["a program that includes only the headers calls every function without a block"]
        ),
        (
            "`notify_dump_status`",
            ["a program that includes only the headers calls every function without a block"]
        ),
        (
            "`<notify_keys.h>`",
            ["the names of Darwin's services are constants", "the constants match the table of names"]
        ),
        (
            "`<notify.h>` includes `<dispatch/dispatch.h>`",
            [
                "blocks run on dispatch queues, and may cancel their own token",
                "a program that includes only the headers calls every function without a block",
            ]
        ),
        ("C programs can call Core Foundation's", ["it exports the functions of the headers and nothing else"]),
        (
            "A registration asks `notifyd`",
            ["a registration waits until the bus has confirmed it"]
        ),
        ("`/etc/notify.conf`", ["nothing reads notify.conf"]),
    ]

    /// The same for the table of Documentation/porting.md.
    private static let porting: [(row: String, tests: [String])] = [
        (
            "Any application hears every name.",
            ["in a Flatpak that hides the bus the handler is called once, and own posts are heard"]
        ),
        (
            "Functions fail silently.",
            [
                "a handler is called for each failure",
                "without a handler each kind of failure prints one line on standard error",
            ]
        ),
        (
            "`notifyd` is always running.",
            [
                "a post without a bus is reported, and one with a bus is sent",
                "an observer that found no bus hears posts once there is one", "an observer outlives the bus",
            ]
        ),
        ("Names reach every user's programs.", ["NOTIFYBUS_ADDRESS selects another bus"]),
        ("Names longer than 511 bytes", ["a handler is called for each failure"]),
        (
            "A background application may be suspended;",
            ["a process is suspended by its id, and each token is notified once on resume"]
        ),
        ("Posts may be coalesced at any time.", ["4,096 notifications are queued for each registration"]),
        ("A callback cannot capture anything.", ["each program hears what it posts"]),
        ("`@convention(c) (CFNotificationCenter?", ["each program hears what it posts"]),
        ("A parameter of type `CFNotificationCallback`", ["each program hears what it posts"]),
        ("`CFString` is a class,", ["Core Foundation's types are Swift's own"]),
        ("`import CoreFoundation` is enough.", ["a file that imports CoreFoundation, and runs its run loop"]),
        ("`CFNotificationCenterGetDistributedCenter`", ["the distributed center is silent and says so once"]),
        (
            "The local center and Foundation's",
            ["the local center and Foundation's center have nothing to do with each other"]
        ),
        ("A run loop that runs inside a callback", ["a run loop inside a callback calls no other"]),
        ("`CFRunLoopStop` ends", ["CFRunLoopRun serves the main queue, with Foundation and without"]),
        ("The Darwin notify center's callback runs", ["callbacks run on the main queue"]),
        ("`AddObserver` returns when", ["a registration waits until the bus has confirmed it"]),
    ]

    @Test(arguments: [("darwin.md", darwin), ("porting.md", porting)])
    func `each row of the page has a test, which fails when it isn't true`(
        page: String,
        table: [(row: String, tests: [String])]
    ) throws {
        let lines = try readLines("\(packageFolder)/Documentation/\(page)")
        let header = try #require(lines.firstIndex { $0.hasSuffix("| Here | Why |") })
        let rows = lines[(header + 2)...].prefix { $0.hasPrefix("| ") }.map { $0.dropFirst(2) }
        for row in rows {
            #expect(table.filter { row.hasPrefix($0.row) }.count == 1, "No test belongs to this row: \(row)")
        }
        for (row, _) in table { #expect(rows.contains { $0.hasPrefix(row) }, "There is no such row: \(row)") }
        let sources = try run("grep", ["-rhF", "--include=*.swift", "func `", "\(packageFolder)/Tests"]).output
        for test in table.flatMap(\.tests) {
            #expect(sources.contains("func `\(test)`"), "There is no such test: \(test)")
        }
    }

    // MARK: - Rows that nothing else tests

    @Test(arguments: anyBusKind())
    func `on a session bus anyone may post a reserved name`(kind: BusKind) throws {
        let room = try NotifyRoom(kind)
        let (token, descriptor) = try room.registerPipe("com.apple.system.timezone")
        try room.post("com.apple.system.timezone")
        #expect(tokens(in: descriptor) == [token])
    }

    @Test(arguments: anyBusKind())
    func `anyone may observe a name that only its owner may post`(kind: BusKind) throws {
        let room = try NotifyRoom(kind)
        let foreign = "user.uid.\(geteuid() + 1).x"
        _ = try room.register(foreign)
        // Root may post everything.
        #expect(status { try room.engine.post(foreign) } == (geteuid() == 0 ? .ok : .notAuthorized))
    }

    @Test(arguments: anyBusKind())
    func `each kind of token has its own history`(kind: BusKind) throws {
        let room = try NotifyRoom(kind)
        let all = try [
            room.register("com.example.a"), room.register("com.example.a", .queue { _ in }),
            room.register("com.example.a", .signal(0)), room.registerPipe("com.example.a").token,
        ]
        for token in all { #expect(room.engine.check(token) == true) }
        try room.post("com.example.a")
        for token in all { #expect(room.engine.check(token) == true && room.engine.check(token) == false) }
    }

    @Test(arguments: anyBusKind())
    func `each process counts for itself what is posted`(kind: BusKind) throws {
        let room = try NotifyRoom(kind)
        let early = try room.register("com.example.a")
        try room.post("com.example.a")
        let other = TokenEngine(center: room.other)
        defer { other.close() }
        var late: Int32 = 0
        try other.register("com.example.a", .none, token: &late)
        #expect(try room.engine.posts(early) != other.posts(late))
    }

    @Test(arguments: anyBusKind())
    func `a post has notified the poster's tokens when it returns`(kind: BusKind) throws {
        let room = try NotifyRoom(kind)
        let (token, descriptor) = try room.registerPipe("com.example.a")
        let calls = Counter()
        _ = try room.register("com.example.a", .queue { _ in calls.add() })
        try room.engine.post("com.example.a")
        #expect(tokens(in: descriptor) == [token] && calls.value == 1)
    }

    @Test(arguments: busKinds)
    func `in the background a check sees nothing`(kind: BusKind) throws {
        let room = try NotifyRoom(kind)
        let agent = try start(productPath("notify-agent"), ["--address", room.bus.address, "-q"], output: .null)
        defer { agent.send(signal: SIGKILL) }
        let token = try room.register("com.example.a")
        _ = room.engine.check(token)
        func set(_ state: String) throws -> Bool {
            let arguments = ["--address", room.bus.address, state, "pid:\(getpid())"]
            return try waitUntil { try run(productPath("notify-lifecycle"), arguments).status == 0 }
        }
        #expect(try set("background"))
        try room.engine.post("com.example.a")
        try room.post("com.example.a")
        #expect(room.engine.check(token) == false)
        #expect(try set("foreground"))
        try room.post("com.example.a")
        #expect(room.engine.check(token) == true)
    }

    @Test(arguments: anyBusKind())
    func `a token's own suspension outlives that of its process`(kind: BusKind) throws {
        let room = try NotifyRoom(kind)
        let agent = try start(productPath("notify-agent"), ["--address", room.bus.address, "-q"], output: .null)
        defer { agent.send(signal: SIGKILL) }
        let (token, descriptor) = try room.registerPipe("com.example.a")
        try room.engine.suspend(token)
        let other = TokenEngine(center: room.other)
        #expect(waitUntil { status { try other.suspend(process: getpid()) } == .ok })
        try other.post("com.example.a")
        try other.resume(process: getpid())
        try room.settle()
        #expect(tokens(in: descriptor).isEmpty)
        try room.engine.resume(token)
        #expect(tokens(in: descriptor) == [token])
    }

    @Test(arguments: anyBusKind())
    func `4,096 notifications are queued for each registration`(kind: BusKind) throws {
        let room = try NotifyRoom(kind)
        let queues = [Recorder<Registration>(), Recorder<Registration>()]
        for queue in queues { _ = try room.register("com.example.a", .queue { queue.append($0) }) }
        for _ in 0..<5_000 { try room.engine.post("com.example.a") }
        #expect(queues.map(\.count) == [4_096, 4_096])
        var runs = 0
        queues[0].elements[0].run { runs += 1 }
        try room.engine.post("com.example.a")
        #expect(runs == 1 && queues.map(\.count) == [4_097, 4_096])
    }

    @Test func `descriptors are closed on exec`() throws {
        let room = try NotifyRoom(.daemon)
        let descriptor = try room.registerPipe("com.example.a").descriptor
        #expect(fcntl(descriptor, F_GETFD) & FD_CLOEXEC != 0)
    }

    @Test func `no function needs a name to return`() throws {
        let room = try NotifyRoom(.daemon)
        var token: Int32 = 0
        #expect(status { try room.engine.register(nil, .queue { _ in }, token: &token) } == .invalidName)
        #expect(token == -1)
    }

    @Test func `options without an effect have none`() throws {
        let room = try NotifyRoom(.daemon)
        // DISPATCH, REGEN, FILTERED and OLD_IPC.
        for option in [0x1, 0x2, 0x4, 0x8, 0xf] as [UInt32] {
            room.engine.setOptions(option)
            #expect(status { try room.engine.post("com.example.a") } == .ok)
        }
        // NOTIFY_NO_DISPATCH
        var token: Int32 = 0
        var descriptor: Int32 = -1
        let flags = Int32(bitPattern: 0x8000_0000)
        try room.engine.register("com.example.a", descriptor: &descriptor, flags: flags, token: &token)
        try room.engine.post("com.example.a")
        #expect(tokens(in: descriptor) == [token])
    }

    @Test(arguments: anyBusKind())
    func `a registration waits until the bus has confirmed it`(kind: BusKind) throws {
        let room = try NotifyRoom(kind)
        for round in 1...200 {
            let (token, descriptor) = try room.registerPipe("com.example.\(round)")
            // By another program, and so on another connection.
            try room.post("com.example.\(round)")
            #expect(tokens(in: descriptor) == [token])
        }
    }

    @Test func `nothing reads notify.conf`() throws {
        let found = try run("grep", ["-c", "notify.conf", productPath("libnotifybus.so")])
        #expect(found.lines == ["0"])
    }
}
