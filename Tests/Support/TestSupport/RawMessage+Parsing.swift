// SPDX-License-Identifier: Apache-2.0

extension RawMessage {
    /// Removes the first message from a buffer; nil if it is incomplete.
    static func take(from buffer: inout [UInt8]) throws -> RawMessage? {
        guard buffer.count >= 16 else { return nil }
        var reader = RawReader(buffer[..<16])
        guard reader.byte() == UInt8(ascii: "l") else { throw TestSupportError("A message is not little-endian.") }
        let kind = reader.byte().flatMap(Kind.init)
        let flags = reader.byte()
        _ = reader.byte()
        guard let kind, let flags, let bodyLength = reader.uint32(), let serial = reader.uint32(),
            let fieldsLength = reader.uint32()
        else { throw TestSupportError("A message is of no known kind.") }
        let bodyStart = (16 + Int(fieldsLength) + 7) & ~7
        let end = bodyStart + Int(bodyLength)
        guard buffer.count >= end else { return nil }
        var message = RawMessage(kind)
        message.flags = flags
        message.serial = serial
        try message.readFields(buffer[16..<16 + Int(fieldsLength)])
        message.body = Array(buffer[bodyStart..<end])
        buffer.removeFirst(end)
        return message
    }

    private mutating func readFields(_ bytes: ArraySlice<UInt8>) throws {
        var reader = RawReader(bytes)
        while !reader.isAtEnd {
            reader.align(to: 8)
            guard let code = reader.byte(), let type = reader.signature() else { return }
            switch type {
            case "s", "o":
                let text = reader.string()
                switch code {
                case 1: path = text
                case 2: interface = text
                case 3: member = text
                case 4: errorName = text
                case 6: destination = text
                case 7: sender = text
                default: break
                }
            case "u":
                let number = reader.uint32()
                if code == 5 { replySerial = number }
            case "g": signature = reader.signature() ?? ""
            default: throw TestSupportError("A header field has the type \(type).")
            }
        }
    }
}
