// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyNames
import Testing

/// Whom sleep and shutdown wait for, as values.
@Suite struct HoldsTests {
    private static let sleep: NotifyName = "org.notifybus.system.willsleep"
    private static let end: NotifyName = "org.notifybus.system.willshutdown"

    @Test func `sleep waits for each that holds it and hears of it, until the last has let go or has ended`() {
        var holds = Holds()
        for connection in [":1.1", ":1.2", ":1.3", ":1.4"] {
            #expect(holds.hold(Self.sleep, by: connection) == 0)
        }
        #expect(!holds.isHeld(Self.sleep))
        holds.begin(Self.sleep, now: 100) { $0 != ":1.4" }
        #expect(holds.isHeld(Self.sleep) && !holds.isHeld(Self.end))
        #expect(holds.hold(Self.sleep, by: ":1.1") == 100)
        holds.letGo(Self.sleep, 100, by: ":1.1")
        holds.forget(":1.2")
        #expect(holds.isHeld(Self.sleep))
        holds.letGo(Self.end, 100, by: ":1.3")
        #expect(holds.isHeld(Self.sleep))
        holds.letGo(Self.sleep, 100, by: ":1.3")
        #expect(!holds.isHeld(Self.sleep))
        // The one that has ended is not waited for the next time.
        holds.begin(Self.sleep, now: 200) { _ in true }
        for connection in [":1.1", ":1.3", ":1.4"] { holds.letGo(Self.sleep, 200, by: connection) }
        #expect(!holds.isHeld(Self.sleep))
    }

    @Test func `who is done with an earlier time is not done with this one`() {
        var holds = Holds()
        _ = holds.hold(Self.sleep, by: ":1.1")
        holds.begin(Self.sleep, now: 100) { _ in true }
        // The same moment is another time.
        holds.begin(Self.sleep, now: 100) { _ in true }
        holds.letGo(Self.sleep, 100, by: ":1.1")
        holds.letGo(Self.sleep, .max, by: ":1.1")
        #expect(holds.isHeld(Self.sleep))
        holds.letGo(Self.sleep, holds.hold(Self.sleep, by: ":1.1"), by: ":1.1")
        #expect(!holds.isHeld(Self.sleep))
    }

    @Test func `who comes in the midst of it is waited for from the next time on`() {
        var holds = Holds()
        holds.begin(Self.end, now: 1) { _ in true }
        #expect(holds.hold(Self.end, by: ":1.1") == 1)
        #expect(!holds.isHeld(Self.end))
        holds.begin(Self.end, now: 2) { _ in true }
        #expect(holds.isHeld(Self.end))
    }
}
