// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import NotifyCore

@Suite struct BusCallTemplateTests {
    @Test func `a call made from a template has the bytes that libdbus would give it`() {
        for member in ["AddMatch", "GetConnectionUnixUser"] {
            for wantsReply in [true, false] {
                let template = BusCallTemplate(member, wantsReply: wantsReply)
                let draft = wantsReply ? BusConnection.Draft.busCall(member) : .oneWayBusCall(member)
                for (serial, text) in ["", "a", "bcd", "type='signal'", "ä", String(repeating: "x", count: 5_000)]
                    .enumerated()
                {
                    let serial = UInt32(serial * 100_000 + 1)
                    let expected = BusConnection.withBytes(draft, [.string(text)], serial: serial) { Array($0) }
                    #expect(template?.withBytes(text, serial: serial) { Array($0) } == expected)
                }
            }
        }
    }
}
