// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// Programs as people write them for Darwin in Swift, with `import notify` and nothing else.
@Suite
struct SwiftProgramTests {
    let bus: PrivateBus
    let center: NotifyCenter

    init() throws {
        bus = try PrivateBus(.daemon)
        center = NotifyCenter(bus: .address(bus.address))
    }

    /// The same programs with and without Foundation.
    static let builds = ["notify-swift-programs", "notify-swift-programs-foundation"]

    private func program(_ name: String, _ build: String) throws -> RunningCommand {
        try start(productPath(build), [name], environment: ["NOTIFYBUS_ADDRESS": bus.address])
    }

    private func post(_ name: String, times: Int = 1) throws {
        for _ in 0..<times { try center.postOnceConnected(NotifyName(name)) }
        try center.synchronize(timeout: .patience)
    }

    @Test(arguments: builds)
    func `a closure on the main queue, which ends its own registration`(build: String) throws {
        let running = try program("dispatch", build)
        _ = try running.waitForOutputLines(1)
        try post("com.example.dispatch", times: 3)
        let result = try running.wait()
        #expect(result.status == 0 && result.lines == ["ready", "heard 1", "heard 2", "heard 3"])
    }

    @Test(arguments: builds)
    func `a cache that is invalidated by notify_check`(build: String) throws {
        let running = try program("check", build)
        try running.writeInput("\n\n")
        #expect(try running.waitForOutputLines(2) == ["changed", "unchanged"])
        try post("com.example.check")
        var lines = 2
        let isChanged = try waitUntil {
            lines += 1
            try running.writeInput("\n")
            return try running.waitForOutputLines(lines).last == "changed"
        }
        #expect(isChanged)
        running.closeInput()
        #expect(try running.wait().status == 0)
    }

    @Test(arguments: builds)
    func `a dispatch source on a descriptor that serves two names`(build: String) throws {
        let running = try program("descriptor", build)
        _ = try running.waitForOutputLines(1)
        try post("com.example.two")
        try post("com.example.one")
        #expect(try running.waitForOutputLines(3) == ["ready", "two", "one"])
    }

    @Test(arguments: builds)
    func `an asynchronous sequence around notify_register_dispatch`(build: String) throws {
        let running = try program("stream", build)
        _ = try running.waitForOutputLines(1)
        try post("com.example.stream", times: 3)
        let result = try running.wait()
        #expect(result.status == 0 && result.lines == ["ready", "element 1", "element 2", "element 3"])
    }

    @Test(arguments: builds)
    func `an object that observes, pauses, and stops when it is released`(build: String) throws {
        let result = try program("observer", build).wait()
        #expect(result.status == 0 && result.lines == ["heard", "resume", "heard", "end"])
    }

    @Test(arguments: builds)
    func `a state without an agent`(build: String) throws {
        let result = try program("state", build).wait()
        #expect(result.status == 0 && result.lines == ["no agent", "0"])
    }

    @Test(arguments: builds)
    func `an observer of Core Foundation that finds itself by its pointer`(build: String) throws {
        let result = try program("unmanaged", build).wait()
        #expect(result.status == 0 && result.lines == ["com.example.unmanaged 1", "com.example.unmanaged 2"])
    }

    @Test(arguments: builds)
    func `a wrapper in the style of Combine`(build: String) throws {
        let result = try program("publisher", build).wait()
        #expect(result.status == 0 && result.lines == Array(repeating: "com.example.publisher", count: 3))
    }

    @Test(arguments: builds)
    func `the names of Darwin's services are constants`(build: String) throws {
        let result = try program("keys", build).wait()
        #expect(result.status == 0 && result.lines == ["com.apple.system.timezone"])
    }

    @Test func `a program that declares the functions itself links them and imports nothing`() throws {
        let result = try start(productPath("notify-by-hand"), environment: ["NOTIFYBUS_ADDRESS": bus.address]).wait()
        #expect(result.status == 0 && result.lines == ["every function returned what it should"], "\(result.output)")
    }

    @Test func `a program that asks for Darwin finds it, if the module is called so`() throws {
        let result = try start(productPath("notify-as-darwin"), environment: ["NOTIFYBUS_ADDRESS": bus.address]).wait()
        #expect(result.lines == ["changed 1, com.apple.system.timezone", "heard on the main queue"])
        #expect(result.status == 0, "\(result.errorOutput)")
    }
}
