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
}
