// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A message in memory: its header, read in place. See the D-Bus specification, "Message Format".
///
/// Everything in it points into the bytes from which it was read, and is valid as long as they are. Strings end with
/// NUL and contain none; whether they are legal for their purpose is not checked.
package struct BusMessage {
    package enum Kind {
        case signal, reply, error, call, disconnected
        /// A call that is too long: there is only its header.
        case longCall
        /// Unusable: too long, or not valid.
        case invalid
    }

    package private(set) var kind: Kind
    package private(set) var serial: UInt32 = 0
    package private(set) var replySerial: UInt32 = 0
    package private(set) var wantsReply = false
    package private(set) var isBigEndian = false
    /// Whether there are header fields that no specification defines yet.
    package private(set) var hasUnknownFields = false
    package private(set) var path: UnsafePointer<CChar>?
    package private(set) var interface: UnsafePointer<CChar>?
    package private(set) var member: UnsafePointer<CChar>?
    package private(set) var sender: UnsafePointer<CChar>?
    package private(set) var errorName: UnsafePointer<CChar>?
    package private(set) var destination: UnsafePointer<CChar>?
    /// The types of the arguments.
    package private(set) var signature = UnsafeRawBufferPointer(start: nil, count: 0)
    /// How many descriptors came with it, and the position of that number, 0 if there is none.
    package private(set) var descriptorCount: UInt32 = 0
    package private(set) var descriptorCountOffset = 0
    /// Those that have come; nil if there are none, or the connection takes none.
    package var descriptors: MessageDescriptors?
    /// From its first byte on; the body may be incomplete.
    package private(set) var bytes = UnsafeRawBufferPointer(start: nil, count: 0)
    package private(set) var bodyOffset = 0

    /// Not a message.
    package init(kind: Kind) {
        self.kind = kind
    }

    // MARK: - Lengths

    /// What precedes the header fields, and the positions of its numbers.
    package static let fixedLength = 16
    static let bodyLengthOffset = 4
    private static let serialOffset = 8
    package static let serialRange = serialOffset..<serialOffset + 4
    static let fieldsLengthOffset = 12
    /// The longest message, and the longest array of header fields, that the specification allows. Within both limits,
    /// sums of lengths stay below 2^31.
    package static let longestMessage: UInt32 = 134_217_728
    static let longestFields: UInt32 = 67_108_864

    /// How long the whole message is, of which `bytes` may be the beginning.
    package var length: Int {
        bytes.count < BusMessage.fixedLength
            ? bytes.count : bodyOffset + Int(WireReader.uint32(bytes, BusMessage.bodyLengthOffset, isBigEndian))
    }

    // MARK: - Header

    package static let signalType: UInt8 = 4
    private static let noReplyFlag: UInt8 = 1

    /// Reads the header of a message.
    ///
    /// - Parameters:
    ///   - bytes: at least everything up to the body.
    ///   - bodyOffset: the `body` of its `extent`.
    /// - Returns: nil if it violates the specification, or lacks what a message of its kind must have.
    package init?(_ bytes: UnsafeRawBufferPointer, bodyOffset: Int) {
        switch bytes[1] {
        case 1: kind = .call
        case 2: kind = .reply
        case 3: kind = .error
        case 4: kind = .signal
        case 0: return nil
        default: kind = .invalid
        }
        isBigEndian = bytes[0] == UInt8(ascii: "B")
        wantsReply = kind == .call && bytes[2] & BusMessage.noReplyFlag == 0
        serial = WireReader.uint32(bytes, BusMessage.serialOffset, isBigEndian)
        self.bytes = bytes
        self.bodyOffset = bodyOffset
        let fields = Int(WireReader.uint32(bytes, BusMessage.fieldsLengthOffset, isBigEndian))
        let start = BusMessage.fixedLength
        var reader = WireReader(bytes, start..<start + fields, isBigEndian: isBigEndian)
        guard serial != 0, readFields(&reader), isComplete else { return nil }
        for index in (start + fields)..<bodyOffset where bytes[index] != 0 { return nil }
    }

    /// The call is too long for its arguments to be kept.
    package mutating func dropArguments() { kind = .longCall }

    @inline(__always)
    private mutating func readFields(_ reader: inout WireReader) -> Bool {
        while !reader.isAtEnd {
            // Each field is a structure of a code, the type of the value, and the value. The known types have one
            // letter, so code and type are four bytes, compared at once.
            guard reader.align(to: 8), let head = reader.fourBytes() else { return false }
            switch head {
            case 0x006f_0101: guard read(&reader, into: &path) else { return false }
            case 0x0073_0102: guard read(&reader, into: &interface) else { return false }
            case 0x0073_0103: guard read(&reader, into: &member) else { return false }
            case 0x0073_0104: guard read(&reader, into: &errorName) else { return false }
            case 0x0075_0105:
                guard replySerial == 0, let number = reader.uint32(), number != 0 else { return false }
                replySerial = number
            case 0x0073_0106: guard read(&reader, into: &destination) else { return false }
            case 0x0073_0107: guard read(&reader, into: &sender) else { return false }
            case 0x0067_0108:
                guard signature.baseAddress == nil, let text = reader.signature() else { return false }
                signature = text
            case 0x0075_0109:
                guard descriptorCountOffset == 0, let number = reader.uint32() else { return false }
                descriptorCountOffset = reader.position - 4
                descriptorCount = number
            default:
                // An unknown field may have any value.
                guard skipUnknownField(&reader) else { return false }
            }
        }
        return true
    }

    private static let lastKnownField: UInt8 = 9

    private mutating func skipUnknownField(_ reader: inout WireReader) -> Bool {
        reader.goBack(4)
        guard let code = reader.byte(), code > BusMessage.lastKnownField, let type = reader.signature() else {
            return false
        }
        hasUnknownFields = true
        return reader.skip(type)
    }

    @inline(__always)
    private func read(_ reader: inout WireReader, into field: inout UnsafePointer<CChar>?) -> Bool {
        guard field == nil, let text = reader.string() else { return false }
        field = text.baseAddress?.assumingMemoryBound(to: CChar.self)
        return true
    }

    private var isComplete: Bool {
        switch kind {
        case .signal: path != nil && interface != nil && member != nil
        case .call, .longCall: path != nil && member != nil
        case .reply: replySerial != 0
        case .error: replySerial != 0 && errorName != nil
        case .invalid, .disconnected: true
        }
    }

    /// Whether it has what every message from a bus to a client has.
    package var mayComeFromBus: Bool {
        guard kind != .invalid, let sender, sender[0] != 0 else { return false }
        guard kind == .signal || kind == .call, let path else { return true }
        return path[0] == CChar(bitPattern: UInt8(ascii: "/")) && member?[0] != 0
    }

    // MARK: - Arguments

    /// The only argument, if it is a string.
    package var text: UnsafeRawBufferPointer? {
        guard signature.count == 1, signature[0] == UInt8(ascii: "s") else { return nil }
        var reader = bodyReader
        guard let text = reader.string(), reader.isAtEnd else { return nil }
        return text
    }

    /// The only argument, if it is a `u` or a `t`.
    package var number: UInt64? {
        guard signature.count == 1 else { return nil }
        var reader = bodyReader
        let number: UInt64? =
            switch signature[0] {
            case UInt8(ascii: "u"): reader.uint32().map { UInt64($0) }
            case UInt8(ascii: "t"): reader.uint64()
            default: nil
            }
        return reader.isAtEnd ? number : nil
    }

    package var bodyReader: WireReader { WireReader(bytes, bodyOffset..<bytes.count, isBigEndian: isBigEndian) }

    package func hasMember(_ name: String) -> Bool {
        guard let member else { return false }
        return name.withCString { strcmp($0, member) } == 0
    }

    // MARK: - Sender

    /// The unique name of the bus itself, which no other connection can have.
    package static let busName = "org.freedesktop.DBus"

    /// A message without a sender can only come from the other end of the socket: a bus fills it in. A proxy in front of the
    /// bus refuses calls so.
    package var isFromBus: Bool { sender == nil || isFrom(BusMessage.busName) }

    package func isFrom(_ name: String) -> Bool {
        guard let sender else { return false }
        return name.withCString { strcmp($0, sender) } == 0
    }
}

extension BusMessage {
    /// Whether a signal claims to be a post.
    package var looksLikePost: Bool {
        guard kind == .signal, let interface else { return false }
        return strncmp(interface, "org.notifybus.n.", 16) == 0 || strncmp(interface, "org.notifybus.h.", 16) == 0
    }
}
