// SPDX-License-Identifier: Apache-2.0

import Glibc

extension BusMessage {
    static let signalType: UInt8 = 4

    /// Reads a message that looks like a post, in place: most of what a delivery costs otherwise is libdbus making a
    /// message of its own from these bytes and checking what no post needs checked.
    ///
    /// What it accepts libdbus accepts too, and says the same of it, but for what the receiver compares with its own
    /// bytes anyway: whether strings are legal as what they stand for. See the D-Bus specification, "Message Format".
    ///
    /// - Parameter bytes: a whole message.
    /// - Returns: nil if it is anything else, or written in any other way than a bus and libdbus write posts.
    static func post(in bytes: UnsafeRawBufferPointer) -> BusMessage? {
        guard bytes.count > 16, bytes[0] == UInt8(ascii: "l"), bytes[1] == signalType, bytes[3] == 1 else {
            return nil
        }
        let fieldsEnd = 16 + number(bytes, 12)
        let body = (fieldsEnd + 7) & ~7
        guard number(bytes, 8) != 0, body + number(bytes, 4) == bytes.count else { return nil }

        var message = BusMessage(kind: .signal)
        var hasText = false
        var position = 16
        while position < fieldsEnd {
            // Each field is a structure of a code, the type of what follows, and that. All types have one letter.
            guard position + 7 <= fieldsEnd, bytes[position + 1] == 1, bytes[position + 3] == 0 else { return nil }
            let type = bytes[position + 2]
            if (bytes[position], type) == (8, UInt8(ascii: "g")) {
                guard !hasText, isSingleString(bytes, position + 4) else { return nil }
                hasText = true
                position += 7
            } else {
                let code = bytes[position]
                guard let text = string(bytes, position + 4, before: fieldsEnd, &position) else { return nil }
                switch (code, type) {
                case (1, UInt8(ascii: "o")) where message.path == nil: message.path = text
                case (2, UInt8(ascii: "s")) where message.interface == nil: message.interface = text
                case (3, UInt8(ascii: "s")) where message.member == nil: message.member = text
                case (7, UInt8(ascii: "s")) where message.sender == nil: message.sender = text
                default: return nil
                }
            }
            let padded = min((position + 7) & ~7, fieldsEnd)
            guard isZero(bytes, position, padded) else { return nil }
            position = padded
        }
        guard position == fieldsEnd, isZero(bytes, fieldsEnd, body), hasText, message.path != nil,
            message.member != nil, message.looksLikePost
        else {
            return nil
        }
        var end = body
        guard let text = string(bytes, body, before: bytes.count, &end), end == bytes.count else { return nil }
        message.text = UnsafeRawBufferPointer(start: text, count: end - body - 5)
        return message
    }

    /// Reads a string with its length before it and a NUL behind it, and moves on behind that.
    ///
    /// - Returns: nil if it does not end before `end`, or has a NUL inside.
    @inline(__always)
    private static func string(
        _ bytes: UnsafeRawBufferPointer,
        _ offset: Int,
        before end: Int,
        _ position: inout Int
    ) -> UnsafePointer<CChar>? {
        guard offset + 4 <= end, let base = bytes.baseAddress else { return nil }
        let count = number(bytes, offset)
        guard offset + 4 + count < end else { return nil }
        let text = (base + offset + 4).assumingMemoryBound(to: CChar.self)
        guard strnlen(text, count + 1) == count else { return nil }
        position = offset + 4 + count + 1
        return text
    }

    /// Whether the signature that stands here is that of one string.
    @inline(__always)
    private static func isSingleString(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> Bool {
        bytes[offset] == 1 && bytes[offset + 1] == UInt8(ascii: "s") && bytes[offset + 2] == 0
    }

    @inline(__always)
    private static func isZero(_ bytes: UnsafeRawBufferPointer, _ start: Int, _ end: Int) -> Bool {
        for index in start..<end where bytes[index] != 0 { return false }
        return true
    }

    @inline(__always)
    private static func number(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> Int {
        Int(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
    }
}
