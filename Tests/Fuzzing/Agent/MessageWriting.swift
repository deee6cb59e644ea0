// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// A message from the bus, in the wire format, with a sender that only a bus may choose.
struct OutgoingMessage {
    enum Kind: UInt8 { case call = 1, reply, error, signal }

    var kind: Kind
    var serial: UInt32
    var sender: String
    var wantsReply = true
    var replySerial: UInt32?
    var path: String?
    var interface: String?
    var member: String?
    var errorName: String?
    var arguments: [BusValue] = []

    var bytes: [UInt8] {
        var fields = WireWriter()
        let texts: [(UInt8, String, String?)] = [
            (1, "o", path), (2, "s", interface), (3, "s", member), (4, "s", errorName), (7, "s", sender),
        ]
        for case (let code, let type, let text?) in texts { fields.field(code, type) { $0.text(text) } }
        if let replySerial { fields.field(5, "u") { $0.number(UInt64(replySerial), size: 4) } }
        let signature = arguments.map(\.signature).joined()
        if !signature.isEmpty { fields.field(8, "g") { $0.signature(signature) } }
        var body = WireWriter()
        for argument in arguments { body.value(argument) }
        var message = WireWriter()
        message.bytes += [UInt8(ascii: "l"), kind.rawValue, wantsReply ? 0 : 1, 1]
        message.number(UInt64(body.bytes.count), size: 4)
        message.number(UInt64(serial), size: 4)
        message.number(UInt64(fields.bytes.count), size: 4)
        message.bytes += fields.bytes
        message.align(to: 8)
        return message.bytes + body.bytes
    }
}

/// Writes values in the wire format. See the D-Bus specification, "Marshaling (Wire Format)".
private struct WireWriter {
    var bytes: [UInt8] = []

    mutating func align(to size: Int) {
        while bytes.count % size != 0 { bytes.append(0) }
    }

    mutating func number(_ value: UInt64, size: Int) {
        align(to: size)
        for shift in 0..<size { bytes.append(UInt8(truncatingIfNeeded: value >> (8 * UInt64(shift)))) }
    }

    mutating func text(_ text: String) {
        number(UInt64(text.utf8.count), size: 4)
        bytes += text.utf8
        bytes.append(0)
    }

    mutating func signature(_ text: String) {
        bytes.append(UInt8(truncatingIfNeeded: text.utf8.count))
        bytes += text.utf8
        bytes.append(0)
    }

    mutating func field(_ code: UInt8, _ type: String, _ write: (inout WireWriter) -> Void) {
        align(to: 8)
        bytes.append(code)
        signature(type)
        write(&self)
    }

    mutating func value(_ value: BusValue) {
        switch value {
        case .number(let code, let number): self.number(number, size: WireWriter.alignment(of: code))
        case .double(let double): number(double.bitPattern, size: 8)
        case .text(UInt8(ascii: "g"), let text): signature(text)
        case .text(_, let text): self.text(text)
        case .descriptor: number(0, size: 4)
        case .array(let element, let values):
            number(0, size: 4)
            let place = bytes.count - 4
            align(to: WireWriter.alignment(of: element.utf8.first ?? 0))
            let start = bytes.count
            for value in values { self.value(value) }
            let count = bytes.count - start
            for index in 0..<4 { bytes[place + index] = UInt8(truncatingIfNeeded: count >> (8 * index)) }
        case .structure(let values):
            align(to: 8)
            for value in values { self.value(value) }
        case .entry(let key, let inner):
            align(to: 8)
            self.value(key)
            self.value(inner)
        case .variant(let inner):
            signature(inner.signature)
            self.value(inner)
        }
    }

    private static func alignment(of code: UInt8) -> Int {
        switch code {
        case UInt8(ascii: "y"), UInt8(ascii: "g"), UInt8(ascii: "v"): 1
        case UInt8(ascii: "n"), UInt8(ascii: "q"): 2
        case UInt8(ascii: "x"), UInt8(ascii: "t"), UInt8(ascii: "d"), UInt8(ascii: "("), UInt8(ascii: "{"): 8
        default: 4
        }
    }
}
