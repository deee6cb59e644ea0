// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Finds the messages in a stream of bytes that may begin in the middle of one.
package struct StreamReader {
    /// Messages that are longer are passed over: no post and no mark is.
    private static let interestingLength = 4_096
    /// How much of the first, torn message is kept: the end of a post that may have been torn.
    package static let fragmentLength = 1_024

    /// The end of the message that was begun before the stream.
    package private(set) var fragment: [UInt8] = []
    /// Whether no beginning of a message has been found yet.
    private var isFirst = true
    private var buffer: [UInt8] = []
    /// How many bytes of a long message are still to come.
    private var skipping = 0
    /// Messages that mean nothing new when they come again: the bus has often queued the same post many times.
    private var recent: [[UInt8]] = []
    private var nextRecent = 0
    private static let recentLimit = 8
    /// Where the serial stands, in which two posts of one name differ.
    private static let serial = 8..<12

    package init() {}

    /// Calls with each message that is whole and not long; true if it need not be called when the same comes again.
    package typealias Body = (WireMessage, UnsafeRawBufferPointer) -> Bool

    /// Takes more bytes.
    package mutating func feed(_ bytes: UnsafeRawBufferPointer, _ body: Body) {
        buffer.append(contentsOf: bytes)
        var position = 0
        // Taken out, so that it can be read while other properties change.
        let whole = buffer
        whole.withUnsafeBytes { whole in
            while position < whole.count {
                let rest = UnsafeRawBufferPointer(rebasing: whole[position...])
                guard let used = step(rest, body) else { break }
                position += used
            }
        }
        buffer.removeFirst(min(position, buffer.count))
    }

    /// Nothing more comes. What looked like the beginning of a message and was none may hide others.
    package mutating func end(_ body: Body) {
        while !buffer.isEmpty {
            if isFirst { fragment.append(buffer[0]) }
            buffer.removeFirst()
            feed(UnsafeRawBufferPointer(start: nil, count: 0), body)
        }
    }

    /// - Returns: how many bytes are done with; nil if more must come.
    private mutating func step(_ bytes: UnsafeRawBufferPointer, _ body: Body) -> Int? {
        if skipping > 0 {
            let count = min(skipping, bytes.count)
            skipping -= count
            return count
        }
        if let length = lengthIfRecent(bytes) { return length }
        switch WireMessage.read(bytes) {
        case .message(let message):
            isFirst = false
            if message.length > StreamReader.interestingLength {
                skipping = message.length
                return 0
            }
            guard bytes.count >= message.length else { return nil }
            let own = UnsafeRawBufferPointer(rebasing: bytes[..<message.length])
            if body(message, own) { remember(own) }
            return message.length
        case .needs:
            return nil
        case .invalid:
            // Out of step: the next beginning is looked for byte by byte.
            if isFirst {
                if fragment.count >= 2 * StreamReader.fragmentLength {
                    fragment.removeFirst(fragment.count - StreamReader.fragmentLength)
                }
                fragment.append(bytes[0])
            }
            return 1
        }
    }

    private mutating func remember(_ message: UnsafeRawBufferPointer) {
        if recent.count < StreamReader.recentLimit {
            recent.append(Array(message))
        } else {
            recent[nextRecent] = Array(message)
            nextRecent = (nextRecent + 1) % StreamReader.recentLimit
        }
    }

    private func lengthIfRecent(_ bytes: UnsafeRawBufferPointer) -> Int? {
        guard let start = bytes.baseAddress else { return nil }
        let (head, tail) = (StreamReader.serial.lowerBound, StreamReader.serial.upperBound)
        for message in recent where message.count <= bytes.count {
            let isSame = message.withUnsafeBytes { message in
                guard let other = message.baseAddress else { return false }
                return memcmp(start + tail, other + tail, message.count - tail) == 0 && memcmp(start, other, head) == 0
            }
            if isSame { return message.count }
        }
        return nil
    }

    /// Whether a torn message may have been the post of a name: its end is the name's, as far as it goes.
    package static func isPossibleEnd(_ fragment: [UInt8], ofPostOf name: String) -> Bool {
        guard !fragment.isEmpty else { return false }
        var count = UInt32(name.utf8.count)
        for _ in 0...1 {
            let body = withUnsafeBytes(of: count.littleEndian) { Array($0) } + Array(name.utf8) + [0]
            if fragment.count >= body.count
                ? fragment.suffix(body.count).elementsEqual(body)
                : body.suffix(fragment.count).elementsEqual(fragment)
            {
                return true
            }
            count = count.byteSwapped
        }
        return false
    }
}
