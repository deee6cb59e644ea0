// SPDX-License-Identifier: Apache-2.0

/// A D-Bus message, according to "Message Format" in the D-Bus specification. Nothing is checked.
public struct RawMessage: Sendable {
    /// The kinds of message, by their code.
    public enum Kind: UInt8, Sendable {
        /// A call.
        case call = 1
        /// The reply to a successful call.
        case reply
        /// The reply to a failed call.
        case error
        /// A broadcast, or a message that needs no reply.
        case signal
    }

    /// What kind of message it is.
    public var kind: Kind
    /// The flags: 1 no reply expected, 2 no auto-start, 4 allow interactive authorization.
    public var flags: UInt8 = 0
    /// The sender's number for the message; a client's ``RawBusClient/send(_:)-(RawMessage)`` replaces 0.
    public var serial: UInt32 = 0
    /// The serial number of the call that this replies to.
    public var replySerial: UInt32?
    /// The object path.
    public var path: String?
    /// The interface.
    public var interface: String?
    /// The member.
    public var member: String?
    /// The name of the error, for an error.
    public var errorName: String?
    /// The recipient; nil for a broadcast.
    public var destination: String?
    /// The sender, filled in by the bus.
    public var sender: String?
    /// The number of its descriptors.
    var descriptorCount: UInt32 = 0
    /// The types in the body.
    public var signature = ""
    /// The body.
    public var body: [UInt8] = []

    /// Creates a message without fields.
    public init(_ kind: Kind) {
        self.kind = kind
    }

    /// The string at the beginning of the body, if its signature says so.
    public var string: String? {
        guard let type = signature.first, type == "s" || type == "o" else { return nil }
        var reader = RawReader(body)
        return reader.string()
    }

    /// The number at the beginning of the body, if its signature says so.
    public var uint32: UInt32? {
        guard signature.first == "u" else { return nil }
        var reader = RawReader(body)
        return reader.uint32()
    }

    /// The strings of the array at the beginning of the body, or all if it consists of nothing else.
    public var strings: [String]? {
        var reader = RawReader(body)
        let isArray = signature.hasPrefix("as")
        guard isArray || signature.allSatisfy({ $0 == "s" }) else { return nil }
        guard let size = isArray ? reader.uint32().map(Int.init) : body.count else { return nil }
        let end = reader.position + size
        var strings: [String] = []
        while reader.position < end, let string = reader.string() { strings.append(string) }
        return strings
    }

    /// The message in little-endian wire format.
    public var bytes: [UInt8] {
        var fields = RawBody()
        let texts: [(UInt8, String, String?)] = [
            (1, "o", path), (2, "s", interface), (3, "s", member), (4, "s", errorName), (6, "s", destination),
            (7, "s", sender),
        ]
        for case (let code, let type, let text?) in texts {
            fields.align(to: 8)
            fields.append(bytes: [code])
            fields.append(signature: type)
            fields.append(text)
        }
        if let replySerial {
            fields.align(to: 8)
            fields.append(bytes: [5])
            fields.append(signature: "u")
            fields.append(replySerial)
        }
        if descriptorCount > 0 {
            fields.align(to: 8)
            fields.append(bytes: [9])
            fields.append(signature: "u")
            fields.append(descriptorCount)
        }
        if !signature.isEmpty {
            fields.align(to: 8)
            fields.append(bytes: [8])
            fields.append(signature: "g")
            fields.append(signature: signature)
        }
        var message = RawBody()
        message.append(bytes: [UInt8(ascii: "l"), kind.rawValue, flags, 1])
        message.append(UInt32(body.count))
        message.append(serial)
        message.append(UInt32(fields.bytes.count))
        message.append(bytes: fields.bytes)  // 16 bytes in, so its own alignment holds.
        message.align(to: 8)
        message.append(bytes: body)
        return message.bytes
    }
}
