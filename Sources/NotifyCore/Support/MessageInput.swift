// SPDX-License-Identifier: Apache-2.0

import Glibc

/// What a bus sends, read from its socket and cut into messages. See the D-Bus specification, "Message Format".
///
/// One read(2) takes as many messages as have come. Descriptors that are passed along are closed by the kernel.
struct MessageInput: ~Copyable {
    enum Next {
        /// A whole message; its bytes are valid until the next call.
        case message(UnsafeRawBufferPointer)
        /// A signal that is too long to be one that anybody here wants; it has not been kept.
        case passedOver
        /// Nothing whole is left.
        case nothing
        /// The bytes are no messages. Nothing can be found in what follows.
        case broken
    }

    /// Room for the usual; a message that needs more gets it for as long as it is there.
    private static let usualCapacity = 32_768
    /// Signals that are longer are passed over.
    private static let longestSignal = 65_536
    /// The longest message, and the longest array of header fields, that the specification allows.
    private static let longestMessage = 134_217_728
    private static let longestFields = 67_108_864
    /// What comes before the header fields, and where the lengths stand in it.
    private static let fixedLength = 16
    private static let bodyLengthOffset = 4
    private static let fieldsLengthOffset = 12

    private var buffer = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    /// What has been read and not handed out: `buffer[head..<tail]`.
    private var head = 0
    private var tail = 0
    /// How many bytes of a message that is passed over are still to come.
    private var skipping = 0
    /// How long the message is that has begun to come.
    private var wanted = 0
    /// Whether the other side has closed the connection.
    private(set) var hasEnded = false

    init() {}

    deinit {
        buffer.deallocate()
    }

    /// Reads once what the socket has, without waiting.
    mutating func fill(from descriptor: Int32) {
        makeRoom()
        // With messages that nobody has taken yet there may be none.
        let room = UnsafeMutableRawBufferPointer(rebasing: buffer[tail...])
        while !hasEnded, room.count > 0 {
            let count = recv(descriptor, room.baseAddress, room.count, Int32(MSG_DONTWAIT))
            if count > 0 {
                tail += count
                return
            }
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN { return }
            hasEnded = true
        }
    }

    mutating func next() -> Next {
        if skipping > 0 { skip() }
        let bytes = UnsafeRawBufferPointer(rebasing: buffer[head..<tail])
        guard bytes.count >= MessageInput.fixedLength else { return .nothing }
        guard let length = MessageInput.length(bytes) else { return .broken }
        if length > MessageInput.longestSignal, bytes[1] == BusMessage.signalType {
            skipping = length
            return .passedOver
        }
        guard bytes.count >= length else {
            wanted = length
            return .nothing
        }
        head += length
        return .message(UnsafeRawBufferPointer(rebasing: bytes[..<length]))
    }

    private mutating func skip() {
        let count = min(skipping, tail - head)
        head += count
        skipping -= count
    }

    /// - Returns: how long the message is that begins here; nil if none does.
    private static func length(_ bytes: UnsafeRawBufferPointer) -> Int? {
        let isBigEndian = bytes[0] == UInt8(ascii: "B")
        guard isBigEndian || bytes[0] == UInt8(ascii: "l"), bytes[3] == 1 else { return nil }
        func number(_ offset: Int) -> Int {
            let raw = bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
            return Int(isBigEndian ? UInt32(bigEndian: raw) : UInt32(littleEndian: raw))
        }
        let fields = number(fieldsLengthOffset)
        guard fields <= longestFields else { return nil }
        let length = (fixedLength + fields + 7) & ~7 + number(bodyLengthOffset)
        return length <= longestMessage ? length : nil
    }

    /// Makes room for more: all that the message wants which has begun, and some in any case.
    private mutating func makeRoom() {
        let count = tail - head
        let capacity = max(MessageInput.usualCapacity, wanted)
        wanted = 0
        if buffer.count < capacity || (count == 0 && buffer.count > capacity) {
            let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 16)
            larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: buffer[head..<tail]))
            buffer.deallocate()
            buffer = larger
        } else if head > 0, count > 0 {
            buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: buffer[head..<tail]))
        }
        head = 0
        tail = count
    }
}
