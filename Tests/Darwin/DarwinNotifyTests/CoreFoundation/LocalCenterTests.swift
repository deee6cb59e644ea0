// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

/// Core Foundation's other centers.
@Suite struct LocalCenterTests {
    @Test(arguments: anyBusKind(), forms)
    func `the local center carries object and dictionary, and has called when a post returns`(
        kind: BusKind,
        form: String
    ) throws {
        #expect(
            try PrivateBus(kind).lines(of: form, "local-arguments") == [
                "true name 7 9 42", "posted", "true name 7 0 0", "posted", "Darwin name", "end",
            ]
        )
    }

    @Test(arguments: forms)
    func `the local center filters by name and object, and calls in order of registration`(form: String) throws {
        #expect(
            try output(form, "local-filters") == [
                "a by 0", "1 a", "3 a", "1 a",
                "a by 20", "1 a", "2 a", "3 a", "4 a", "1 a",
                "a by 30", "1 a", "3 a", "1 a",
                "b by 20", "3 b", "4 b", "5 b",
            ]
        )
    }

    @Test(arguments: forms)
    func `the local center removes by observer, name and object`(form: String) throws {
        #expect(
            try output(form, "local-removal") == [
                "not 1 a by 20", "1 a", "1 a", "2 a", "2 a", "2 a", "1 b", "1 b", "1 b", "2 b", "2 b", "2 b",
                "not 1 b", "1 a", "1 a", "2 a", "2 a", "2 a", "1 b", "2 b", "2 b", "2 b",
                "not 2 by 20", "1 a", "1 a", "2 a", "2 a", "1 b", "2 b", "2 b",
                "not 1", "2 a", "2 a", "2 b", "2 b",
                "none",
            ]
        )
    }

    @Test(arguments: forms)
    func `a callback of the local center may remove itself and others, add and post`(form: String) throws {
        #expect(try output(form, "local-changes") == ["1 begins", "4 a", "3 a", "1 ends", "4 a"])
    }

    @Test(arguments: forms)
    func `the local center calls on the thread that posts`(form: String) throws {
        #expect(try output(form, "local-thread") == ["heard a on the posting queue", "posted"])
    }

    @Test(arguments: anyBusKind(), forms)
    func `the distributed center is silent and says so once`(kind: BusKind, form: String) throws {
        #expect(
            try PrivateBus(kind).lines(of: form, "distributed") == [
                "the same true, another true",
                "CFNotificationCenterAddObserver did nothing, and others won't either: Linux has no distributed center. "
                    + "CFNotificationCenterGetDarwinNotifyCenter() carries names between programs.",
                "end",
            ]
        )
    }

    /// What a program prints that needs no bus.
    private func output(_ form: String, _ name: String) throws -> [String] {
        let environment = ["DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent"]
        let result = try run(productPath(form), [name], environment: environment)
        #expect(result.status == 0 && result.errorOutput == "", "\(result.errorOutput)")
        return result.lines
    }
}
