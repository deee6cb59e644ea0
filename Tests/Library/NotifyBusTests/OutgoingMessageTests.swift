// SPDX-License-Identifier: Apache-2.0

import MessageComparison
import TestSupport
import Testing

@testable import NotifyCore

@Suite struct OutgoingMessageTests {
    /// Values of all types, whose alignment depends on what precedes them.
    private static let values: [[BusValue]] = [
        [], [.string("")], [.string("ä€😀")], [.strings([])], [.strings(["a", "bb", "ccc", ""])], [.variant(.uint64(7))],
        [.number(code: UInt8(ascii: "y"), 255), .number(code: UInt8(ascii: "n"), 0xfffe), .boolean(true)],
        [.number(code: UInt8(ascii: "q"), 65_535), .number(code: UInt8(ascii: "i"), 0xffff_ffff), .uint32(.max)],
        [.number(code: UInt8(ascii: "x"), .max), .uint64(1), .double(-0.5), .text(code: UInt8(ascii: "g"), "a{sv}")],
        [.text(code: UInt8(ascii: "o"), "/a/b"), .array(element: "t", []), .array(element: "(yt)", [])],
        [.array(element: "(yt)", [.structure([.number(code: UInt8(ascii: "y"), 1), .uint64(2)])])],
        [.dictionary([("a", .string("x")), ("bc", .strings(["y"])), ("d", .variant(.double(1)))]), .uint32(3)],
        [.array(element: "as", [.strings([]), .strings(["x"])]), .structure([.boolean(false), .string("z")])],
    ]

    private func messages(_ values: [BusValue]) -> [OutgoingMessage] {
        [
            .call(":1.1", path: "/x", interface: "org.example.x", member: "X", values),
            .call("org.x.y", path: "/x", interface: "org.x", member: "Y", values, activates: false, wantsReply: false),
            .signal(path: "/", interface: "org.x.x", member: "X", values),
            .signal(to: ":1.2", path: "/x", interface: "org.x.x", member: "X", values),
            .reply(to: ":1.42", .max, values),
            .error(to: ":1.42", 1, name: "org.x.Error", "text"),
        ]
    }

    @Test func `what is written is a message for libdbus, and is read as it was meant`() throws {
        for values in OutgoingMessageTests.values {
            for message in messages(values) {
                let bytes = try #require(message.bytes(serial: 0x0102_0304))
                try bytes.withUnsafeBytes { bytes in
                    #expect(MessageComparison.isMessage(bytes))
                    #expect(MessageComparison.fault(in: bytes) == nil)
                    let read = try #require(MessageComparison.wholeMessage(bytes))
                    #expect(read.serial == 0x0102_0304)
                    var reader = BusValueReader(read.bodyReader)
                    let arguments = reader.values(read.signature)
                    #expect(arguments == (read.kind == .error ? [.string("text")] : values))
                }
            }
        }
    }

    @Test func `a text with a NUL in it is not sent, and neither is too long an array`() {
        let long = String(repeating: String(repeating: "x", count: 1_024), count: 65_536)
        for values: [BusValue] in [[.string("a\0b")], [.text(code: UInt8(ascii: "g"), "\0")], [.strings([long])]] {
            let signal = OutgoingMessage.signal(path: "/x", interface: "org.x.x", member: "X", values)
            #expect(signal.bytes(serial: 1) == nil)
        }
    }

    @Test(arguments: [
        "", ":", "x", ":1", ":1.", ":.1", "a..b", "a.1b", ":1.1 ", ":1.1\n", "a.ä",
        String(repeating: "a.", count: 128) + "a",
    ])
    func `a message to a connection that can't exist is not sent`(name: String) {
        let call = OutgoingMessage.call(name, path: "/a", interface: "a.b", member: "C", [])
        #expect(call.bytes(serial: 1) == nil)
        #expect(OutgoingMessage.signal(to: name, path: "/", interface: "a.b", member: "C", []).bytes(serial: 1) == nil)
        #expect(OutgoingMessage.reply(to: name, 1, []).bytes(serial: 1) == nil)
        #expect(OutgoingMessage.error(to: name, 1, name: "a.b", "").bytes(serial: 1) == nil)
    }

    @Test(arguments: ["", "a", "/a/", "//", "/a//b", "/a b", "/a-b", "/\n"])
    func `a message to or about an object that can't exist is not sent`(path: String) {
        let call = OutgoingMessage.call("a.b", path: path, interface: "a.b", member: "C", [])
        #expect(call.bytes(serial: 1) == nil)
        let value = BusValue.text(code: UInt8(ascii: "o"), path)
        for values in [[value], [.array(element: "o", [value])], [.variant(value)]] {
            #expect(OutgoingMessage.reply(to: ":1.1", 1, values).bytes(serial: 1) == nil)
        }
    }

    @Test(arguments: ["", "a", "a.b c", "a.1", "a-b.c"])
    func `an error with a name that is none is not sent`(name: String) {
        #expect(OutgoingMessage.error(to: ":1.1", 1, name: name, "").bytes(serial: 1) == nil)
    }

    @Test func `descriptors are counted and written as their positions`() throws {
        let values: [BusValue] = [.descriptor(9), .structure([.descriptor(7), .variant(.descriptor(8))])]
        let message = OutgoingMessage.signal(path: "/x", interface: "org.x.x", member: "X", values)
        #expect(message.descriptors == [9, 7, 8])
        try (try #require(message.bytes(serial: 1))).withUnsafeBytes { bytes in
            let read = try #require(MessageComparison.wholeMessage(bytes))
            #expect(read.descriptorCount == 3)
            #expect(read.signature.elementsEqual("h(hv)".utf8))
            #expect(MessageComparison.isMessage(bytes))
        }
    }
}
