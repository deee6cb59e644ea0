// SPDX-License-Identifier: Apache-2.0

/// The head of a D-Bus message, read from bytes. See the D-Bus specification, "Message Format".
package struct WireMessage: Equatable {
    package enum Reading: Equatable {
        case message(WireMessage)
        /// So many bytes are needed to say more.
        case needs(Int)
        /// No message begins here.
        case invalid
    }

    /// What comes before the array of fields, and the length of that array.
    static let fixedLength = 16
    /// The specification allows 64 MB. Messages from a bus to an observer have far less.
    private static let maximumHeadLength = 65_536
    /// The longest message that the specification allows.
    private static let maximumLength = 134_217_728

    package var type: UInt8 = 0
    package var path = ""
    package var interface = ""
    package var member = ""
    package var sender = ""
    package var signature = ""
    package var isBigEndian = false
    /// Where the body begins, and where the next message does.
    package var bodyOffset = 0
    package var length = 0

    /// Reads the head at the start of some bytes.
    package static func read(_ bytes: UnsafeRawBufferPointer) -> Reading {
        guard bytes.count >= fixedLength else {
            // What is there must be right already.
            return isPlausible(bytes) ? .needs(fixedLength) : .invalid
        }
        guard isPlausible(bytes) else { return .invalid }
        var message = WireMessage()
        message.isBigEndian = bytes[0] == UInt8(ascii: "B")
        message.type = bytes[1]
        let body = Int(WireReader.number(bytes, 4, message.isBigEndian))
        let serial = WireReader.number(bytes, 8, message.isBigEndian)
        let fields = Int(WireReader.number(bytes, 12, message.isBigEndian))
        guard serial != 0, fields <= maximumHeadLength, body <= maximumLength else { return .invalid }
        message.bodyOffset = (fixedLength + fields + 7) & ~7
        message.length = message.bodyOffset + body
        guard bytes.count >= message.bodyOffset else { return .needs(message.bodyOffset) }
        var reader = WireReader(UnsafeRawBufferPointer(rebasing: bytes[..<(fixedLength + fields)]), message.isBigEndian)
        reader.position = fixedLength
        guard message.readFields(&reader), message.isComplete else { return .invalid }
        for index in (fixedLength + fields)..<message.bodyOffset where bytes[index] != 0 { return .invalid }
        return .message(message)
    }

    private static func isPlausible(_ bytes: UnsafeRawBufferPointer) -> Bool {
        if bytes.count > 0, bytes[0] != UInt8(ascii: "l"), bytes[0] != UInt8(ascii: "B") { return false }
        if bytes.count > 1, !(1...4).contains(bytes[1]) { return false }
        if bytes.count > 2, bytes[2] > 7 { return false }
        if bytes.count > 3, bytes[3] != 1 { return false }
        return true
    }

    private mutating func readFields(_ reader: inout WireReader) -> Bool {
        while !reader.isAtEnd {
            reader.align(to: 8)
            guard let code = reader.byte(), let type = reader.signature() else { return false }
            switch (code, type) {
            case (1, "o"): guard let text = reader.string() else { return false }; path = text
            case (2, "s"): guard let text = reader.string() else { return false }; interface = text
            case (3, "s"): guard let text = reader.string() else { return false }; member = text
            case (4, "s"), (6, "s"): guard reader.string() != nil else { return false }
            case (5, "u"), (9, "u"): guard reader.number() != nil else { return false }
            case (7, "s"): guard let text = reader.string() else { return false }; sender = text
            case (8, "g"): guard let text = reader.signature() else { return false }; signature = text
            default: return false
            }
        }
        return true
    }

    /// Whether the fields are there that every message from a bus has.
    private var isComplete: Bool {
        guard !sender.isEmpty else { return false }
        switch type {
        case 4: return path.utf8.first == UInt8(ascii: "/") && !interface.isEmpty && !member.isEmpty
        case 1: return path.utf8.first == UInt8(ascii: "/") && !member.isEmpty
        default: return true
        }
    }

    /// The only argument, if it is a string; `bytes` are those of the whole message.
    package func text(in bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        guard signature == "s", bytes.count == length, length - bodyOffset >= 5 else { return nil }
        let count = Int(WireReader.number(bytes, bodyOffset, isBigEndian))
        guard count == length - bodyOffset - 5, bytes[length - 1] == 0 else { return nil }
        return UnsafeRawBufferPointer(rebasing: bytes[(bodyOffset + 4)..<(length - 1)])
    }

    /// The only argument, if it is a `t`.
    package func number(in bytes: UnsafeRawBufferPointer) -> UInt64? {
        guard signature == "t", bytes.count == length, length - bodyOffset == 8 else { return nil }
        let low = UInt64(WireReader.number(bytes, bodyOffset + (isBigEndian ? 4 : 0), isBigEndian))
        let high = UInt64(WireReader.number(bytes, bodyOffset + (isBigEndian ? 0 : 4), isBigEndian))
        return high << 32 | low
    }
}

/// Reads D-Bus's wire format; everything is nil where the bytes end too early.
struct WireReader {
    private let bytes: UnsafeRawBufferPointer
    private let isBigEndian: Bool
    var position = 0

    init(_ bytes: UnsafeRawBufferPointer, _ isBigEndian: Bool) {
        self.bytes = bytes
        self.isBigEndian = isBigEndian
    }

    var isAtEnd: Bool { position >= bytes.count }

    mutating func align(to alignment: Int) {
        position = (position + alignment - 1) & ~(alignment - 1)
    }

    mutating func byte() -> UInt8? {
        guard position < bytes.count else { return nil }
        defer { position += 1 }
        return bytes[position]
    }

    mutating func number() -> UInt32? {
        align(to: 4)
        guard position + 4 <= bytes.count else { return nil }
        defer { position += 4 }
        return WireReader.number(bytes, position, isBigEndian)
    }

    mutating func string() -> String? {
        number().flatMap { text(Int($0)) }
    }

    mutating func signature() -> String? {
        byte().flatMap { text(Int($0)) }
    }

    private mutating func text(_ count: Int) -> String? {
        guard position + count < bytes.count, bytes[position + count] == 0 else { return nil }
        defer { position += count + 1 }
        return String(validating: bytes[position..<(position + count)], as: UTF8.self)
    }

    static func number(_ bytes: UnsafeRawBufferPointer, _ offset: Int, _ isBigEndian: Bool) -> UInt32 {
        let raw = bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
        return isBigEndian ? UInt32(bigEndian: raw) : UInt32(littleEndian: raw)
    }
}
