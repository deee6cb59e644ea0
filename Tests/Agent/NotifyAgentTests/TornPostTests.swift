// SPDX-License-Identifier: Apache-2.0

import NotifyAgent
import TestSupport
import Testing

/// A post whose beginning the program had read before it was parked.
@Suite struct TornPostTests {
    @Test func `the end of a post may be one of its name, and of no other`() {
        var message = RawMessage(.signal)
        message.path = "/org/notifybus"
        message.interface = "org.notifybus.n.com.example.name0"
        message.member = "Posted"
        message.sender = ":1.7"
        message.serial = 1
        message.signature = "s"
        message.body = RawBusClient.stringBody("com.example.name0")
        let bytes = message.bytes
        for offset in 1..<bytes.count {
            let fragment = Array(bytes[offset...])
            #expect(TornPost.isPossibleEnd(fragment, ofPostOf: "com.example.name0"), "cut at \(offset)")
            let mayBeAnother = TornPost.isPossibleEnd(fragment, ofPostOf: "com.example.other")
            #expect(!mayBeAnother || fragment == [0])
        }
    }
}
