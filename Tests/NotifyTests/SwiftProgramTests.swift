// SPDX-License-Identifier: Apache-2.0

import CDarwinNotify
import DarwinNotify
import Glibc
import NotifyCore
import TestSupport
import Testing

/// Programs as people write them for Darwin in Swift, with `import DarwinNotify`.
@Suite(.timeLimit(.minutes(2)))
struct SwiftProgramTests {
    let bus: PrivateBus
    let center: NotifyCenter

    init() throws {
        bus = try PrivateBus(.daemon)
        center = NotifyCenter(bus: .address(bus.address))
    }

    private func program(_ name: String) throws -> RunningCommand {
        try start(productPath("notify-swift-programs"), [name], environment: ["NOTIFYBUS_ADDRESS": bus.address])
    }

    private func post(_ name: String, times: Int = 1) throws {
        for _ in 0..<times { try center.post(name: name) }
        try center.synchronize(timeout: .seconds(20))
    }

    @Test func `a closure on the main queue, which ends its own registration`() throws {
        let running = try program("dispatch")
        _ = try running.waitForOutputLines(1)
        try post("com.example.dispatch", times: 3)
        let result = try running.wait()
        #expect(result.status == 0 && result.lines == ["ready", "heard 1", "heard 2", "heard 3"])
    }

    @Test func `a cache that is invalidated by notify_check`() throws {
        let running = try program("check")
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

    @Test func `a dispatch source on a descriptor that serves two names`() throws {
        let running = try program("descriptor")
        _ = try running.waitForOutputLines(1)
        try post("com.example.two")
        try post("com.example.one")
        #expect(try running.waitForOutputLines(3) == ["ready", "two", "one"])
    }

    @Test func `an asynchronous sequence around notify_register_dispatch`() throws {
        let running = try program("stream")
        _ = try running.waitForOutputLines(1)
        try post("com.example.stream", times: 3)
        let result = try running.wait()
        #expect(result.status == 0 && result.lines == ["ready", "element 1", "element 2", "element 3"])
    }

    @Test func `an object that observes, pauses, and stops when it is gone`() throws {
        let result = try program("observer").wait()
        #expect(result.status == 0 && result.lines == ["heard", "resume", "heard", "end"])
    }

    @Test func `a state without an agent`() throws {
        let result = try program("state").wait()
        #expect(result.status == 0 && result.lines == ["no agent", "0"])
    }

    @Test func `the constants are those of the C header`() {
        #expect(CDarwinNotify.NOTIFY_STATUS_OK == DarwinNotify.NOTIFY_STATUS_OK)
        #expect(CDarwinNotify.NOTIFY_STATUS_INVALID_NAME == DarwinNotify.NOTIFY_STATUS_INVALID_NAME)
        #expect(CDarwinNotify.NOTIFY_STATUS_INVALID_TOKEN == DarwinNotify.NOTIFY_STATUS_INVALID_TOKEN)
        #expect(CDarwinNotify.NOTIFY_STATUS_INVALID_PORT == DarwinNotify.NOTIFY_STATUS_INVALID_PORT)
        #expect(CDarwinNotify.NOTIFY_STATUS_INVALID_FILE == DarwinNotify.NOTIFY_STATUS_INVALID_FILE)
        #expect(CDarwinNotify.NOTIFY_STATUS_INVALID_SIGNAL == DarwinNotify.NOTIFY_STATUS_INVALID_SIGNAL)
        #expect(CDarwinNotify.NOTIFY_STATUS_INVALID_REQUEST == DarwinNotify.NOTIFY_STATUS_INVALID_REQUEST)
        #expect(CDarwinNotify.NOTIFY_STATUS_NOT_AUTHORIZED == DarwinNotify.NOTIFY_STATUS_NOT_AUTHORIZED)
        #expect(CDarwinNotify.NOTIFY_STATUS_OPT_DISABLE == DarwinNotify.NOTIFY_STATUS_OPT_DISABLE)
        #expect(CDarwinNotify.NOTIFY_STATUS_SERVER_NOT_FOUND == DarwinNotify.NOTIFY_STATUS_SERVER_NOT_FOUND)
        #expect(CDarwinNotify.NOTIFY_STATUS_NULL_INPUT == DarwinNotify.NOTIFY_STATUS_NULL_INPUT)
        #expect(CDarwinNotify.NOTIFY_STATUS_FAILED == DarwinNotify.NOTIFY_STATUS_FAILED)
        #expect(CDarwinNotify.NOTIFY_REUSE == DarwinNotify.NOTIFY_REUSE)
        #expect(CDarwinNotify.NOTIFY_OPT_ENABLE == DarwinNotify.NOTIFY_OPT_ENABLE)
        #expect(CDarwinNotify.NOTIFY_OPT_DISABLE == DarwinNotify.NOTIFY_OPT_DISABLE)
    }
}
