// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

/// The documented rules of the Darwin notify center, and undocumented ones on which code relies.
@Suite struct RuleTests {
    @Test(arguments: anyBusKind(), forms)
    func `object, dictionary, options and suspension behavior are ignored`(kind: BusKind, form: String) throws {
        let expected = (1...4).map { "\($0) name true true" }
        #expect(try PrivateBus(kind).lines(of: form, "arguments") == expected + expected + ["end"])
    }

    @Test(arguments: anyBusKind(), forms)
    func `a nil observer is called, and can't be removed`(kind: BusKind, form: String) throws {
        #expect(try PrivateBus(kind).lines(of: form, "nil-observer") == ["name", "end"])
    }

    @Test(arguments: anyBusKind(), forms)
    func `without a name or a callback nothing is observed or posted`(kind: BusKind, form: String) throws {
        #expect(
            try PrivateBus(kind).lines(of: form, "nil-name") == [
                "CFNotificationCenterAddObserver requires a name, but was given nil.",
                "CFNotificationCenterAddObserver requires a callback, but was given nil.",
                "CFNotificationCenterPostNotification requires a name, but was given nil.",
                "CFNotificationCenterPostNotificationWithOptions requires a name, but was given nil.",
                "end",
            ]
        )
    }

    @Test(arguments: anyBusKind(), forms)
    func `a removal by name removes one observer's registrations of that name`(kind: BusKind, form: String) throws {
        #expect(try PrivateBus(kind).lines(of: form, "removal-by-name") == ["2 a", "1 b", "2 b", "end"])
    }

    @Test(arguments: anyBusKind(), forms)
    func `a removal without a name removes all of one observer's registrations`(kind: BusKind, form: String) throws {
        #expect(try PrivateBus(kind).lines(of: form, "removal-of-all-names") == ["2 a", "2 b", "end"])
    }

    @Test(arguments: anyBusKind(), forms)
    func `RemoveEveryObserver removes only that observer's registrations`(kind: BusKind, form: String) throws {
        #expect(try PrivateBus(kind).lines(of: form, "removal-of-every") == ["1 a", "1 b", "end"])
    }

    @Test(arguments: anyBusKind(), forms)
    func `one removal removes all duplicates`(kind: BusKind, form: String) throws {
        #expect(try PrivateBus(kind).lines(of: form, "removal-of-duplicates") == ["after a", "end"])
    }

    @Test(arguments: busKinds, forms)
    func `after a removal on the main queue even a queued post is not delivered`(kind: BusKind, form: String) throws {
        #expect(try PrivateBus(kind).lines(of: form, "removed-while-waiting") == ["2 a", "2 b", "end"])
    }

    @Test(arguments: anyBusKind(), forms)
    func `a callback may remove itself and others, and add`(kind: BusKind, form: String) throws {
        let expected = ["1 a", "4 a", "4 a", "3 c", "end"]
        #expect(try PrivateBus(kind).lines(of: form, "changes-inside-callback") == expected)
    }

    @Test(arguments: anyBusKind(), forms)
    func `a removal elsewhere does not wait for the callback`(kind: BusKind, form: String) throws {
        #expect(try PrivateBus(kind).lines(of: form, "removal-elsewhere") == ["removed meanwhile", "end"])
    }

    @Test(arguments: anyBusKind(), forms)
    func `callbacks run on the main queue`(kind: BusKind, form: String) throws {
        #expect(try PrivateBus(kind).lines(of: form, "main-queue") == ["main true", "end"])
    }

    @Test(arguments: anyBusKind(), forms)
    func `CFRunLoopRun serves the main queue, with Foundation and without`(kind: BusKind, form: String) throws {
        #expect(try PrivateBus(kind).lines(of: form, "run-loop") == ["end"])
    }

    @Test(arguments: anyBusKind(), forms)
    func `a run loop inside a callback calls no other`(kind: BusKind, form: String) throws {
        #expect(try PrivateBus(kind).lines(of: form, "nested-run-loop") == ["the callback ends", "the next one"])
    }

    @Test(arguments: anyBusKind(), [500, 50_000])
    func `all registrations of one name are called for one post`(kind: BusKind, count: Int) throws {
        #expect(try PrivateBus(kind).lines(of: "darwin-programs", "many-duplicates", "\(count)") == ["\(count)"])
    }

    @Test(arguments: anyBusKind())
    func `of many observers of one name each can be removed separately`(kind: BusKind) throws {
        let count = 20_000
        #expect(try PrivateBus(kind).lines(of: "darwin-programs", "many-observers", "\(count)") == ["\(count + 1)"])
    }

    @Test(arguments: busKinds)
    func `an observer of many names hears each, and none once it is removed`(kind: BusKind) throws {
        let bus = try PrivateBus(kind, limits: ["max_match_rules_per_connection": 512])
        #expect(try bus.lines(of: "darwin-programs", "many-names", "2000") == ["2000"])
    }

    @Test(arguments: anyBusKind())
    func `four threads can add and remove concurrently`(kind: BusKind) throws {
        #expect(try PrivateBus(kind).lines(of: "darwin-programs", "churn", "300") == ["end"])
    }
}
