// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Reads D-Bus's serialized form in place. See the D-Bus specification, "Marshaling (Wire Format)".
///
/// Every result is nil if the bytes end too early or are invalid. Lengths are compared before they are added to
/// anything, so that none overflows, even where `Int` has 32 bits.
package struct WireReader {
    /// The longest array that the specification allows.
    private static let longestArray: UInt32 = 67_108_864

    package let bytes: UnsafeRawBufferPointer
    package let isBigEndian: Bool
    /// Where reading stops: at most the number of bytes.
    package let end: Int
    private(set) var position: Int

    /// - Parameters:
    ///   - bytes: the message from its start, to which alignment refers.
    ///   - range: the part to be read, within the bytes.
    package init(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>, isBigEndian: Bool) {
        self.bytes = bytes
        self.isBigEndian = isBigEndian
        position = range.lowerBound
        end = range.upperBound
    }

    package var isAtEnd: Bool { position == end }

    /// Skips zeros up to a multiple of a power of two.
    @inline(__always)
    package mutating func align(to alignment: Int) -> Bool {
        let count = -position & (alignment - 1)
        guard count <= end - position else { return false }
        for _ in 0..<count {
            if bytes[position] != 0 { return false }
            position += 1
        }
        return true
    }

    @inline(__always)
    package mutating func byte() -> UInt8? {
        guard position < end else { return nil }
        defer { position += 1 }
        return bytes[position]
    }

    /// Four bytes as they are in memory, the first one lowest.
    @inline(__always)
    package mutating func fourBytes() -> UInt32? {
        guard end - position >= 4 else { return nil }
        defer { position += 4 }
        return UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: position, as: UInt32.self))
    }

    /// Moves back over bytes that have been read.
    package mutating func goBack(_ count: Int) {
        position -= count
    }

    /// Reads the length of an array.
    ///
    /// - Returns: its end; the reader is then at its first element.
    package mutating func arrayEnd(alignment: Int) -> Int? {
        guard let count = uint32(), count <= WireReader.longestArray, align(to: alignment), Int(count) <= end - position
        else { return nil }
        return position + Int(count)
    }

    /// Moves forward to a position.
    package mutating func skip(to place: Int) -> Bool {
        guard position <= place, place <= end else { return false }
        position = place
        return true
    }

    package mutating func uint16() -> UInt16? {
        guard align(to: 2), end - position >= 2 else { return nil }
        defer { position += 2 }
        let raw = bytes.loadUnaligned(fromByteOffset: position, as: UInt16.self)
        return isBigEndian ? UInt16(bigEndian: raw) : UInt16(littleEndian: raw)
    }

    @inline(__always)
    package mutating func uint32() -> UInt32? {
        guard align(to: 4), end - position >= 4 else { return nil }
        defer { position += 4 }
        return WireReader.uint32(bytes, position, isBigEndian)
    }

    package mutating func uint64() -> UInt64? {
        guard align(to: 8), end - position >= 8 else { return nil }
        defer { position += 8 }
        let raw = bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self)
        return isBigEndian ? UInt64(bigEndian: raw) : UInt64(littleEndian: raw)
    }

    /// A string or an object path, without the NUL at its end. It contains none.
    @inline(__always)
    package mutating func string() -> UnsafeRawBufferPointer? {
        guard let count = uint32(), let length = Int(exactly: count) else { return nil }
        return text(length)
    }

    @inline(__always)
    package mutating func signature() -> UnsafeRawBufferPointer? {
        guard let count = byte() else { return nil }
        return text(Int(count))
    }

    @inline(__always)
    private mutating func text(_ count: Int) -> UnsafeRawBufferPointer? {
        guard count < end - position, let base = bytes.baseAddress else { return nil }
        let start = base + position
        guard strnlen(start.assumingMemoryBound(to: CChar.self), count + 1) == count else { return nil }
        position += count + 1
        return UnsafeRawBufferPointer(start: start, count: count)
    }

    @inline(__always)
    package static func uint32(_ bytes: UnsafeRawBufferPointer, _ offset: Int, _ isBigEndian: Bool) -> UInt32 {
        let raw = bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
        return isBigEndian ? UInt32(bigEndian: raw) : UInt32(littleEndian: raw)
    }
}
