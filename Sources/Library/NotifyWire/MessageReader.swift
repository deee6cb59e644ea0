// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// Splits the bytes from a bus into messages. See the D-Bus specification, "Message Format".
///
/// One recvmsg(2) takes as many messages as have arrived.
///
/// It is used by one thread at a time, which its owner ensures.
package final class MessageReader {
    /// Where the stream begins.
    package enum Beginning {
        /// At the start of a message, as on a connection of one's own. If something can't be read, the two sides no
        /// longer understand each other.
        case ofMessage
        /// Anywhere, as on a connection that another process has read before: the next message is searched for.
        case anywhere
    }

    package enum Next {
        /// A message; valid until the next call. Of a call that is too long it is the header.
        case message(BusMessage)
        /// Of no use here: not valid, or too long, in which case it has not been kept.
        case passedOver
        /// Nothing complete is left.
        case nothing
        /// The bytes are not messages. Nothing can be found in what follows.
        case broken
    }

    /// Enough for usual messages; one that needs more gets it only temporarily.
    private static let usualCapacity = 32_768
    /// Signals longer than this are skipped.
    private static let longestSignal = 65_536
    /// Calls longer than this are refused: no call of the lifecycle protocol that is within its limits is as long.
    package static let longestCall = 16_777_216
    /// How much of a message is kept in a stream that begins anywhere: no post is longer.
    private static let longestAnywhere = 4_096
    /// How long a header may be there. Bytes that falsely look like the start of a message must not hide many messages.
    private static let longestHeadAnywhere = 65_536
    /// How much of a torn message is kept: enough for the end of a post.
    package static let fragmentLength = 1_024

    private let beginning: Beginning
    private var buffer = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    /// What has been read but not returned: `buffer[head..<tail]`.
    private var head = 0
    private var tail = 0
    /// How many bytes preceded `head`.
    private var offset: UInt64 = 0
    /// How many bytes of a message that is skipped are still to come.
    private var skipping = 0
    /// How much room the message that has started to arrive needs next. It grows with what has come, not with what the
    /// message says is to come.
    private var wanted = 0
    /// Where the last message began whose header has been checked before its end has come.
    private var checkedHead = UInt64.max
    /// Whether descriptors are accepted; if not, the kernel drops them.
    private let takesDescriptors: Bool
    private var descriptors = DescriptorQueue()
    /// Whether no message has been found yet.
    private var isFirst = true
    /// The end of the message that began before the stream, or as much of it as is kept.
    package private(set) var fragment: [UInt8] = []
    /// Whether nothing more will come.
    private var isOver = false
    /// Asked about a call of which only the header has come, and that is long; if it is refused, it is not kept.
    package var refusesCall: ((BusMessage) -> Bool)?

    package init(_ beginning: Beginning = .ofMessage, takesDescriptors: Bool = false) {
        self.beginning = beginning
        self.takesDescriptors = takesDescriptors
    }

    deinit {
        buffer.deallocate()
    }

    /// Reads once what a socket has available, without waiting.
    ///
    /// - Returns: how many bytes came; 0 at the end, nil if nothing is available.
    package func fill(from socket: Int32) -> Int? {
        makeRoom()
        // While there are messages that have not been taken yet, there may be none.
        guard tail < buffer.count else { return nil }
        let room = UnsafeMutableRawBufferPointer(rebasing: buffer[tail...])
        // A call that does not wait is never interrupted.
        let count = takesDescriptors ? receiveWithDescriptors(socket, room) : receive(socket, room)
        tail += max(count, 0)
        return count < 0 && errno == EAGAIN ? nil : max(count, 0)
    }

    @inline(__always)
    private func receive(_ socket: Int32, _ room: UnsafeMutableRawBufferPointer) -> Int {
        guard let start = room.baseAddress else { return 0 }
        var none: Int32 = 0
        return linux_receive(socket, start, room.count, nil, &none)
    }

    private func receiveWithDescriptors(_ socket: Int32, _ room: UnsafeMutableRawBufferPointer) -> Int {
        withUnsafeTemporaryAllocation(of: Int32.self, capacity: Int(LINUX_MAX_DESCRIPTORS)) { descriptors in
            guard let start = room.baseAddress else { return 0 }
            var found: Int32 = 0
            let count = linux_receive(socket, start, room.count, descriptors.baseAddress, &found)
            if found > 0 {
                let end = offset + UInt64(tail - head)
                self.descriptors.add(Array(descriptors[..<Int(found)]), with: end..<end + UInt64(max(count, 0)))
            }
            return count
        }
    }

    /// Appends bytes that were read elsewhere.
    package func feed(_ bytes: UnsafeRawBufferPointer) {
        wanted = max(wanted, tail - head + bytes.count)
        makeRoom()
        UnsafeMutableRawBufferPointer(rebasing: buffer[tail...]).copyMemory(from: bytes)
        tail += bytes.count
    }

    /// What has been read and not returned.
    package var rest: [UInt8] { Array(buffer[head..<tail]) }

    /// How many bytes there is room for.
    package var capacity: Int { buffer.count }

    /// Ends the stream. Bytes that looked like the start of a message but were never completed may hide others.
    package func finish() {
        isOver = true
    }

    // MARK: - Splitting

    /// The bytes of the next message, if complete, for a caller that can interpret them. They are valid until the next
    /// call.
    package func peek() -> UnsafeRawBufferPointer? {
        guard skipping == 0, case .ofMessage = beginning else { return nil }
        let bytes = UnsafeRawBufferPointer(rebasing: buffer[head..<tail])
        guard case .known(_, let end) = BusMessage.extent(of: bytes), end <= bytes.count else { return nil }
        return UnsafeRawBufferPointer(rebasing: bytes[..<end])
    }

    /// Skips the message that `peek` returned.
    package func passOver(_ message: UnsafeRawBufferPointer) {
        advance(message.count)
        if takesDescriptors { descriptors.closeAll(before: offset) }
    }

    package func next() -> Next {
        while true {
            if skipping > 0 { skip() }
            if takesDescriptors { descriptors.closeAll(before: offset) }
            let bytes = UnsafeRawBufferPointer(rebasing: buffer[head..<tail])
            switch BusMessage.extent(of: bytes) {
            case .unknown:
                guard case .anywhere = beginning, !bytes.isEmpty, isOver || !BusMessage.mayBegin(with: bytes) else {
                    return .nothing
                }
                stepOver()
            case .invalid:
                guard case .anywhere = beginning else { return .broken }
                stepOver()
            case .known(let body, let end):
                if case .anywhere = beginning {
                    if let found = find(bytes, body, end) { return found }
                } else {
                    return cut(bytes, body, end)
                }
            }
        }
    }

    @inline(__always)
    private func cut(_ bytes: UnsafeRawBufferPointer, _ body: Int, _ end: Int) -> Next {
        if end > MessageReader.longestSignal, bytes[1] == BusMessage.signalType {
            skipping = end
            return .passedOver
        }
        guard bytes.count >= end else { return beginning(bytes, body, end) }
        let start = offset
        advance(end)
        guard var message = BusMessage(UnsafeRawBufferPointer(rebasing: bytes[..<end]), bodyOffset: body) else {
            return .passedOver
        }
        let count = message.descriptorCount
        if count > 0 { message.descriptors = descriptors.take(count, startingAt: start) }
        return .message(message)
    }

    /// A message has begun to arrive: one that will be of no use is not kept.
    private func beginning(_ bytes: UnsafeRawBufferPointer, _ body: Int, _ end: Int) -> Next {
        wanted = min(end, 2 * bytes.count)
        guard end > MessageReader.usualCapacity, checkedHead != offset, bytes.count >= body else { return .nothing }
        guard var message = BusMessage(UnsafeRawBufferPointer(rebasing: bytes[..<body]), bodyOffset: body) else {
            skipping = end
            return .passedOver
        }
        if message.kind == .call, end > MessageReader.longestCall {
            skipping = end
            message.dropArguments()
            return .message(message)
        }
        checkedHead = offset
        if message.kind == .call, refusesCall?(message) == true {
            skipping = end
            return .passedOver
        }
        return .nothing
    }

    /// Checks whether a message begins here, in a stream that may begin anywhere.
    ///
    /// - Returns: nil if the next byte must be tried.
    private func find(_ bytes: UnsafeRawBufferPointer, _ body: Int, _ end: Int) -> Next? {
        guard BusMessage.mayBegin(with: bytes), body <= MessageReader.longestHeadAnywhere else {
            stepOver()
            return nil
        }
        guard bytes.count >= body else { return wait(for: body) }
        let whole = UnsafeRawBufferPointer(rebasing: bytes[..<min(end, bytes.count)])
        guard let message = BusMessage(whole, bodyOffset: body), message.mayComeFromBus else {
            stepOver()
            return nil
        }
        if end > MessageReader.longestAnywhere {
            isFirst = false
            skipping = end
            return .passedOver
        }
        guard bytes.count >= end else { return wait(for: end) }
        isFirst = false
        advance(end)
        return .message(message)
    }

    /// - Returns: nil if nothing more will come, so that it is not a message.
    private func wait(for count: Int) -> Next? {
        if isOver {
            stepOver()
            return nil
        }
        wanted = count
        return .nothing
    }

    private func stepOver() {
        if isFirst {
            if fragment.count >= 2 * MessageReader.fragmentLength {
                fragment.removeFirst(fragment.count - MessageReader.fragmentLength)
            }
            fragment.append(buffer[head])
        }
        advance(1)
    }

    private func skip() {
        let count = min(skipping, tail - head)
        advance(count)
        skipping -= count
    }

    @inline(__always)
    private func advance(_ count: Int) {
        head += count
        offset += UInt64(count)
    }

    /// Makes room for more: for the rest of the message that has started, and some in any case.
    private func makeRoom() {
        let count = tail - head
        let capacity = max(MessageReader.usualCapacity, wanted)
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

// Where messages begin and end.
extension BusMessage {
    package enum Extent {
        /// Too few bytes to tell.
        case unknown
        /// No message begins here.
        case invalid
        case known(body: Int, end: Int)
    }

    /// Determines where the body of the message that begins here starts, and where the next message does.
    @inline(__always)
    package static func extent(of bytes: UnsafeRawBufferPointer) -> Extent {
        guard bytes.count >= fixedLength else { return .unknown }
        let isBigEndian = bytes[0] == UInt8(ascii: "B")
        guard isBigEndian || bytes[0] == UInt8(ascii: "l"), bytes[3] == 1 else { return .invalid }
        let fields = WireReader.uint32(bytes, fieldsLengthOffset, isBigEndian)
        let body = WireReader.uint32(bytes, bodyLengthOffset, isBigEndian)
        guard fields <= longestFields, body <= longestMessage else { return .invalid }
        let bodyOffset = (fixedLength + Int(fields) + 7) & ~7
        let end = bodyOffset + Int(body)
        return end <= Int(longestMessage) ? .known(body: bodyOffset, end: end) : .invalid
    }

    /// Whether a message from a bus may begin with these bytes, however few.
    fileprivate static func mayBegin(with bytes: UnsafeRawBufferPointer) -> Bool {
        if bytes.count > 0, bytes[0] != UInt8(ascii: "l"), bytes[0] != UInt8(ascii: "B") { return false }
        if bytes.count > 1, !(1...4).contains(bytes[1]) { return false }
        if bytes.count > 2, bytes[2] > 7 { return false }
        if bytes.count > 3, bytes[3] != 1 { return false }
        return true
    }
}

/// Descriptors that came with bytes, until the messages that they belong to are complete.
///
/// The kernel returns the descriptors of one sendmsg(2) with its first byte, and reads nothing beyond it in the same
/// call. So their message starts among the bytes that were read with them, and a message that lost its own, because
/// this process could open no more, never gets those of another one.
private struct DescriptorQueue: ~Copyable {
    private var batches: [(descriptors: [Int32], range: Range<UInt64>)] = []

    init() {}

    deinit {
        for batch in batches { batch.descriptors.forEach { Glibc.close($0) } }
    }

    mutating func add(_ descriptors: [Int32], with range: Range<UInt64>) {
        batches.append((descriptors, range))
    }

    mutating func take(_ count: UInt32, startingAt offset: UInt64) -> MessageDescriptors? {
        guard let first = batches.first, first.range.contains(offset) else { return nil }
        let taken = first.descriptors.prefix(Int(clamping: count))
        batches[0].descriptors.removeFirst(taken.count)
        return MessageDescriptors(Array(taken))
    }

    /// Closes those whose message has passed.
    mutating func closeAll(before offset: UInt64) {
        while let first = batches.first, first.range.upperBound <= offset {
            first.descriptors.forEach { Glibc.close($0) }
            batches.removeFirst()
        }
    }
}
