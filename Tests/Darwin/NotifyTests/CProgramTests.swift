// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// Programs as people write them for Darwin, compiled with the header and the library.
@Suite
struct CProgramTests {
    let library: CLibrary
    let bus: PrivateBus
    let center: NotifyCenter

    init() throws {
        library = try CLibrary.shared.get()
        bus = try PrivateBus(.daemon)
        center = NotifyCenter(bus: .address(bus.address))
    }

    @Test func `a cache is read again only after its name was posted`() throws {
        let file = library.folder + "/settings-\(UInt32.random(in: 0..<UInt32.max))"
        let token = try PostedCheck(bus)
        func write(_ text: String) throws { _ = try run("sh", ["-c", "echo \(text) >\"$0\"", file]) }
        try write("one")
        let program = try library.start("cached-value.c", [file], on: bus)
        func ask(_ count: Int) throws -> String? {
            try program.writeInput("\n")
            return try program.waitForOutputLines(count).last
        }
        #expect(try ask(1) == "read one")
        try write("two")
        #expect(try ask(2) == "cached one")
        try token.post("com.example.settings.changed")
        // The program got it before we got a later post, but its thread may be a moment behind.
        var lines = 2
        let isRead = try waitUntil {
            lines += 1
            return try ask(lines) == "read two"
        }
        #expect(isRead)
        #expect(try ask(lines + 1) == "cached two")
        program.closeInput()
        #expect(try program.wait().status == 0)
    }

    @Test(
        .enabled(if: UserNamespace.obstacle == nil, "\(UserNamespace.obstacle ?? "")"),
        arguments: busKinds,
        UserNamespace.allCases
    )
    func `a program in a user namespace hears what is posted outside`(kind: BusKind, namespace: UserNamespace) throws {
        // As every distribution's.
        let bus = try PrivateBus(kind, policy: "<auth>EXTERNAL</auth>" + PrivateBus.openPolicy)
        let command = try namespace.command + [library.compile("two-names-one-select.c")]
        let program = try start(command[0], Array(command.dropFirst()), environment: library.environment(bus))
        _ = try program.waitForOutputLines(1)
        let center = NotifyCenter(bus: .address(bus.address))
        for name in ["com.example.power", "com.example.quit"] { try center.post(NotifyName(name)) }
        let result = try program.wait()
        #expect(result.status == 0 && result.lines.contains("power"))
    }

    @Test func `select waits for two descriptors, one of which serves two names`() throws {
        let program = try library.start("two-names-one-select.c", on: bus)
        _ = try program.waitForOutputLines(1)
        for name in ["com.example.power", "com.example.network", "com.example.power"] {
            try center.postOnceConnected(NotifyName(name))
        }
        #expect(try program.waitForOutputLines(4).dropFirst() == ["power", "network", "power"])
        try center.postOnceConnected("com.example.quit")
        let result = try program.wait()
        #expect(result.status == 0 && result.lines.suffix(2) == ["open", "closed"])
    }

    @Test func `a daemon reloads for its signal and for its name`() throws {
        let program = try library.start("reload-on-hangup.c", on: bus)
        _ = try program.waitForOutputLines(1)
        try center.postOnceConnected("com.example.daemon.reload")
        _ = try program.waitForOutputLines(2)
        program.send(signal: SIGHUP)
        _ = try program.waitForOutputLines(3)
        try center.postOnceConnected("com.example.daemon.reload")
        #expect(try program.waitForOutputLines(4) == Array(repeating: "configured", count: 4))
    }

    @Test(.enabled(if: CLibrary.dispatch != nil, "the toolchain has no libdispatch"))
    func `blocks run on dispatch queues, and may cancel their own token`() throws {
        let program = try library.compileWithBlocks("blocks-on-a-queue.c")
        let result = try run(program, environment: library.environment(bus))
        #expect(result.status == 0, "\(result.errorOutput)")
        #expect(result.lines.sorted() == ["done 1, same token", "done 2, same token", "hello from the block, 3 times"])
    }

    @Test(.enabled(if: CLibrary.dispatch != nil, "the toolchain has no libdispatch"))
    func `what is no block is refused, such as a Swift closure in a declaration by hand`() throws {
        let result = try run(library.compileWithBlocks("not-a-block.c"), environment: library.environment(bus))
        #expect(result.status == 0, "\(result.errorOutput)")
        #expect(result.lines == ["6 -1", "0"])
    }

    @Test func `with NOTIFYBUS_ADDRESS=process names stay in the process, and there need be no bus`() throws {
        var environment = library.environment(bus)
        environment["NOTIFYBUS_ADDRESS"] = "process:"
        environment["DBUS_SESSION_BUS_ADDRESS"] = "unix:path=/nonexistent/bus"
        let result = try run(library.compile("in-process.c"), environment: environment)
        #expect(result.lines == ["0", "0", "1", "0"], "\(result.errorOutput)")
    }

    @Test func `without libdispatch notify_register_dispatch says so, and everything else works`() throws {
        let result = try library.start("no-dispatch.c", on: bus).wait()
        #expect(result.lines == ["6 -1", "10", "0"])
    }

    @Test(arguments: busKinds)
    func `a callback runs on the library's thread, may call everything, and is over when notify_cancel returns`(
        kind: BusKind
    ) throws {
        let bus = try PrivateBus(kind)
        let result = try library.start("callbacks.c", on: bus).wait(timeout: .patience)
        #expect(result.status == 0 && result.lines == ["failures 0"], "\(result.output)")
    }

    @Test(.disabled(if: CLibrary.isSanitized, "LeakSanitizer needs descriptors at the program's end"))
    func `running out of descriptors is a failure, not a missing bus`() throws {
        let result = try library.start("no-descriptors.c", on: bus).wait()
        #expect(result.lines == ["1000000 1000000 -1"])
    }

    /// Several times each, because what the threads do at that moment differs.
    @Test(
        .disabled(if: CLibrary.isSanitized, "LeakSanitizer needs descriptors at the program's end"),
        arguments: busKinds,
        ["nothing", "files", "sockets"]
    )
    func `a program that closes all descriptors posts and hears on, rests, and keeps what has their numbers`(
        kind: BusKind,
        reuse: String
    ) throws {
        let bus = try PrivateBus(kind)
        let center = NotifyCenter(bus: .address(bus.address))
        let heard = Recorder<String>()
        let observation = try center.addObserver(for: "com.example.second", timeout: .seconds(25)) {
            heard.append($0.string)
        }
        let folder = try TemporaryFolder()
        for round in 1...5 {
            let program = try library.start("closes-all.c", [reuse, "\(folder.path)/\(round)"], on: bus)
            let result = try program.wait()
            #expect(result.lines == ["posted 0", "heard", "rests", "kept, 0 touched"] && result.status == 0)
            #expect(heard.wait(forCount: round))
        }
        withExtendedLifetime(observation) {}
    }

    @Test func `a signal handler that interrupts the first call may ask, and there are no tokens`() throws {
        let program = try library.compile("ask-in-signal-handler.c", ["-rdynamic"])
        let result = try run(program, environment: library.environment(bus))
        #expect(result.lines == ["0 1 1"] && result.status == 0)
    }

    /// As strict as the newest compilers are by themselves, and stricter.
    @Test(
        arguments: CLibrary.available([
            "cc -std=c99", "cc -std=gnu17", "cc -std=gnu2x", "clang -std=c99", "clang -std=c23",
            "clang -fblocks -std=c11",
        ])
    )
    func `a program that includes only the headers calls every function without a block`(compiler: String) throws {
        let words = compiler.split(separator: " ").map(String.init)
        let program = try library.compile(
            "every-function.c",
            with: words[0],
            words.dropFirst() + [
                "-Wpedantic", "-Wstrict-prototypes", "-Werror=implicit-function-declaration", "-Werror=implicit-int",
                "-Werror=int-conversion", "-Werror=incompatible-pointer-types", "-Werror=return-type",
            ]
        )
        let result = try run(program, environment: library.environment(bus))
        #expect(result.status == 0 && result.lines == ["process known, failures 0"], "\(result.output)")
    }

    @Test func `the compiler refuses Mach ports, with the reason`() throws {
        let error = #expect(throws: TestSupportError.self) { try library.compile("mach-port.c") }
        #expect("\(error as Any)".contains("Linux has no Mach ports; use notify_register_file_descriptor()"))
    }

    @Test(
        arguments: CLibrary.available([
            "cc -std=c89", "cc -std=c17", "c++ -x c++ -std=c++98", "clang -std=c89", "clang -fblocks -std=c11",
            "cc -std=c89 -DNOTIFYBUS_EXTENSIONS", "c++ -x c++ -std=c++98 -DNOTIFYBUS_EXTENSIONS",
        ])
    )
    func `the headers compile without a warning`(compiler: String) throws {
        let words = compiler.split(separator: " ").map(String.init)
        let source = library.source("plain-c89.c")
        let flags = ["-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", library.includes, source]
        let result = try run(#require(CLibrary.compiler(words[0])), words.dropFirst() + flags)
        #expect(result.status == 0, "\(result.errorOutput)")
    }

    @Test(.enabled(if: CLibrary.dispatch != nil, "the toolchain has no libdispatch"), arguments: anyBusKind())
    func `a tool like notifyutil compiles with a Mach stub, and each of its options works`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let tool = try library.compileWithBlocks("key-tool.c", library.machStub)
        let agent = try start(productPath("notify-agent"), ["--address", bus.address], output: .null)
        defer { agent.send(signal: SIGKILL) }
        try agent.waitForErrorOutput(containing: "ready")
        let environment = library.environment(bus)
        let names = ["a", "b", "c", "d", "e"].map { "com.example." + $0 }
        let kinds = zip(["-c", "-f", "-S", "-d", "-f"], names).flatMap { [$0, $1] }
        let watching = try start(tool, ["-2"] + kinds + ["-m", "com.example.port", "-o"], environment: environment)
        #expect(try watching.waitForOutputLines(3) == ["port 3 1", "disabled 8", "ready"])
        for round in 1...2 {
            for (index, name) in names.enumerated() {
                try run(tool, ["-p", name], environment: environment)
                let count = 3 + (round - 1) * names.count + index + 1
                #expect(try watching.waitForOutputLines(count).last == name)
            }
        }
        #expect(try watching.wait().status == 0)

        // The first registration involved the agent, which keeps the state.
        let state = try run(tool, ["-s", names[0], "0x10", "-g", names[0]], environment: environment)
        #expect(state.lines == ["\(names[0]) 16", "ready"], "\(state.errorOutput)")
        let observing = try start(tool, ["-1", "-d", names[0]], environment: environment)
        _ = try observing.waitForOutputLines(1)
        let pid = "\(observing.pid)"
        #expect(try run(tool, ["-z", pid, "-p", names[0]], environment: environment).status == 0)
        #expect(try observing.wait().lines == ["ready", names[0]])
    }

    @Test(arguments: anyBusKind())
    func `a tool like notifybench compiles with a Mach stub, and each call returns what it should`(
        kind: BusKind
    ) throws {
        let bus = try PrivateBus(kind)
        let tool = try library.compile("call-timer.c", library.machStub)
        let result = try run(tool, ["1000"], environment: library.environment(bus), timeout: .patience)
        #expect(result.status == 0, "\(result.errorOutput)")
        #expect(result.lines == ["every call said what it should"])
    }

    /// The first two find it in the program itself, where `LD_PRELOAD` puts it.
    @Test(
        .enabled(if: isInstalled("python3"), "there is no python3"),
        .disabled(if: CLibrary.isSanitized, "Python has no runtime of the address sanitizer"),
        arguments: ["everything", "found", "path"]
    )
    func `Python uses the library through ctypes`(way: String) throws {
        var environment = library.environment(bus)
        if way != "path" { environment["LD_PRELOAD"] = "libnotifybus.so.0" }
        let result = try run(python, [library.source("with_ctypes.py"), way], environment: environment)
        #expect(result.lines == ["python heard it"], "\(result.errorOutput)")
    }

    @Test(arguments: [500, 50_000])
    func `many registrations of one name are all notified by one post`(count: Int) throws {
        let result = try library.start("many.c", ["\(count)"], on: bus).wait(timeout: .patience)
        #expect(result.status == 0 && result.lines == ["registered", "all were told once"])
    }

    @Test(arguments: anyBusKind())
    func `100,000 pairs of register and cancel from four threads`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let result = try library.start("many.c", ["pairs"], on: bus).wait(timeout: .patience)
        #expect(result.status == 0 && result.lines == ["failures 0"])
    }
}

/// Posts a name, and returns when the bus has passed it on.
private struct PostedCheck {
    let center: NotifyCenter

    init(_ bus: PrivateBus) throws { center = NotifyCenter(bus: .address(bus.address)) }

    func post(_ name: String) throws {
        try center.postOnceConnected(NotifyName(name))
        try center.synchronize(timeout: .patience)
    }
}
