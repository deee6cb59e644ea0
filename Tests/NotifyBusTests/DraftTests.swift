// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import NotifyCore

/// libdbus ends the process when it is asked for a message that is not valid; the names of others come from others.
@Suite struct DraftTests {
    private func isMade(_ draft: BusConnection.Draft, _ arguments: [BusValue] = []) -> Bool {
        BusConnection.withBytes(draft, arguments, serial: 1) { $0.count > 0 } ?? false
    }

    @Test(arguments: ["", ":", "x", ":1.1 ", "a..b", ":1.1\n", String(repeating: "a.", count: 128) + "a"])
    func `a message to a connection that can't exist is not made`(name: String) {
        #expect(!isMade(.call(destination: name, path: "/a", interface: "a.b", member: "C", activates: false)))
        #expect(!isMade(.oneWayCall(destination: name, path: "/a", interface: "a.b", member: "C")))
        #expect(!isMade(.signal(destination: name, path: "/a", interface: "a.b", member: "C")))
        #expect(!isMade(.reply(destination: name, serial: 1)))
        #expect(!isMade(.error(destination: name, serial: 1, name: "a.b")))
        #expect(isMade(.reply(destination: ":1.1", serial: 1)))
    }

    @Test(arguments: ["", "a", "/a/", "//", "/a b", "/\n"])
    func `a message to or about an object that can't exist is not made`(path: String) {
        #expect(!isMade(.call(destination: "a.b", path: path, interface: "a.b", member: "C", activates: false)))
        let value = BusValue.text(code: UInt8(ascii: "o"), path)
        #expect(!isMade(.reply(destination: ":1.1", serial: 1), [value]))
        #expect(!isMade(.reply(destination: ":1.1", serial: 1), [.array(element: "o", [value])]))
        #expect(!isMade(.reply(destination: ":1.1", serial: 1), [.variant(value)]))
    }

    @Test(arguments: ["", "a", "a.b c", "a.1"])
    func `an error with a name that is none is not made`(name: String) {
        #expect(!isMade(.error(destination: ":1.1", serial: 1, name: name)))
    }
}
