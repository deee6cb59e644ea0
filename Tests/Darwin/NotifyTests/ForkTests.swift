// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// What fork(2) does to a program that uses notify(3).
@Suite
struct ForkTests {
    @Test(arguments: anyBusKind())
    func `a child learns that it is disconnected, takes nothing from its parent, and can execute a program`(
        kind: BusKind
    ) throws {
        let library = try CLibrary.shared.get()
        let bus = try PrivateBus(kind)
        let result = try library.start("after-fork.c", ["200"], on: bus).wait(timeout: .patience)
        #expect(result.lines == ["children done", "post after exec 0", "parent heard it"], "\(result.errorOutput)")
        #expect(result.status == 0)
    }

    /// The argument is what the parent has registered.
    @Test(arguments: anyBusKind(), ["com.example.a", "self.example"])
    func `no function creates objects under a lock of Swift's runtime in a child, nor before forks wait`(
        kind: BusKind,
        name: String
    ) throws {
        let library = try CLibrary.shared.get()
        let bus = try PrivateBus(kind)
        let result = try library.start("first-uses-in-child.c", [name], on: bus).wait(timeout: .patience)
        #expect(result.lines == ["forks wait", "child ended with 0"], "\(result.errorOutput)")
        #expect(result.status == 0)
    }

    @Test(arguments: anyBusKind())
    func `a child does not keep its parent's connections alive`(kind: BusKind) throws {
        let library = try CLibrary.shared.get()
        let bus = try PrivateBus(kind)
        let looker = try RawBusClient(address: bus.address)
        let program = try library.start("child-keeps-nothing.c", on: bus)
        _ = try program.waitForOutputLines(1)
        // Whose connection this is; dbus-broker's launcher has one as well, from some time on.
        func belongsToProgram(_ name: String) throws -> Bool {
            let method = "GetConnectionUnixProcessID"
            let answer = try looker.callBus(method, signature: "s", body: RawBusClient.stringBody(name))
            return answer.uint32 == UInt32(program.pid)
        }
        func connections() throws -> Int {
            try looker.uniqueNames().filter(belongsToProgram).count
        }
        #expect(try connections() == 2)
        try program.writeInput("\n")
        // The program's child lives on until its standard input ends.
        #expect(try waitUntil { try connections() == 0 })
        program.closeInput()
    }

    /// Where another thread is at the fork: it creates the engine, starts the center's threads, connects to the bus.
    @Test(arguments: anyBusKind(), ["pipe2", "eventfd", "connect"])
    func `a child of a fork during the first call does not hang, and has no connection`(kind: BusKind, moment: String)
        throws
    {
        let library = try CLibrary.shared.get()
        let program = try library.compile("fork-in-first-call.c", ["-rdynamic"])
        let bus = try PrivateBus(kind)
        let result = try run(program, [moment], environment: library.environment(bus), timeout: .patience)
        #expect(result.lines == ["0 sockets, 8, 0", "child ended with 0, parent has 0"])
    }
}
