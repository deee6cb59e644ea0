// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// A message from the bus, in the wire format, with a sender that only a bus may choose.
struct ForgedMessage {
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
        var body = BusValueWriter()
        for argument in arguments { body.write(argument) }
        var message = BusValueWriter()
        for byte in [UInt8(ascii: "l"), kind.rawValue, wantsReply ? 0 : 1, 1] { message.byte(byte) }
        message.integer(UInt32(truncatingIfNeeded: body.bytes.count))
        message.integer(serial)
        message.array(alignment: 8) { fields in
            let texts: [(UInt8, String, String?)] = [
                (1, "o", path), (2, "s", interface), (3, "s", member), (4, "s", errorName), (7, "s", sender),
            ]
            for case (let code, let type, let text?) in texts { fields.field(code, type: type) { $0.text(text) } }
            if let replySerial { fields.field(5, type: "u") { $0.integer(replySerial) } }
            let signature = arguments.map(\.signature).joined()
            if !signature.isEmpty { fields.field(8, type: "g") { $0.signature(signature) } }
        }
        message.align(to: 8)
        return message.bytes + body.bytes
    }
}
