// SPDX-License-Identifier: Apache-2.0

/// A call of a method of the bus with a string, as bytes: only the string and the serial differ from call to call.
///
/// libdbus creates the first one, and takes 25,000 instructions for each.
struct BusCallTemplate {
    let member: String
    let wantsReply: Bool
    /// The message up to the length of the string.
    private let head: [UInt8]

    /// - Returns: nil if memory is exhausted.
    init?(_ member: String, wantsReply: Bool) {
        self.member = member
        self.wantsReply = wantsReply
        let draft = wantsReply ? BusConnection.Draft.busCall(member) : .oneWayBusCall(member)
        // The body of an empty string is its length and a NUL.
        let head = BusConnection.withBytes(draft, [.string("")], serial: 1) { Array($0.dropLast(5)) }
        guard let head else { return nil }
        self.head = head
    }

    /// Calls `body` with the message.
    func withBytes<Result>(
        _ argument: String,
        serial: UInt32,
        _ body: (UnsafeRawBufferPointer) -> Result
    ) -> Result {
        var argument = argument
        return argument.withUTF8 { text in
            let count = head.count + 4 + text.count + 1
            return withUnsafeTemporaryAllocation(byteCount: count, alignment: 8) { bytes in
                bytes.copyBytes(from: head)
                // The length of the body and the serial: see the D-Bus specification, "Message Format".
                bytes.storeBytes(of: UInt32(4 + text.count + 1), toByteOffset: 4, as: UInt32.self)
                bytes.storeBytes(of: serial, toByteOffset: 8, as: UInt32.self)
                bytes.storeBytes(of: UInt32(text.count), toByteOffset: head.count, as: UInt32.self)
                UnsafeMutableRawBufferPointer(rebasing: bytes[(head.count + 4)...]).copyBytes(from: text)
                bytes[count - 1] = 0
                return body(UnsafeRawBufferPointer(bytes))
            }
        }
    }
}
