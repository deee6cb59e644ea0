// SPDX-License-Identifier: Apache-2.0

/// Bytes in D-Bus's little-endian wire format, according to "Marshaling (Wire Format)" in the D-Bus specification.
public struct RawBody: Sendable {
    /// The bytes so far.
    public private(set) var bytes: [UInt8] = []

    /// Starts empty.
    public init() {}

    /// Appends bytes unchanged.
    public mutating func append(bytes more: some Sequence<UInt8>) {
        bytes += more
    }

    /// Appends zeros up to a multiple of `alignment`.
    public mutating func align(to alignment: Int) {
        while bytes.count % alignment != 0 { bytes.append(0) }
    }

    /// Appends a `u`.
    public mutating func append(_ value: UInt32) {
        align(to: 4)
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }

    /// Appends an `s` or an `o`. Nothing is checked: the text may be one that no bus allows.
    public mutating func append(_ text: String) {
        append(UInt32(text.utf8.count))
        bytes += text.utf8
        bytes.append(0)
    }

    /// Appends an `as`.
    public mutating func append(_ texts: [String]) {
        align(to: 4)
        var elements = RawBody()
        for text in texts { elements.append(text) }
        append(UInt32(elements.bytes.count))
        append(bytes: elements.bytes)
    }

    /// Appends a `g`.
    public mutating func append(signature: String) {
        bytes.append(UInt8(truncatingIfNeeded: signature.utf8.count))
        bytes += signature.utf8
        bytes.append(0)
    }
}

/// Reads the wire format; everything is optional because the bytes may end early.
struct RawReader {
    private let bytes: ArraySlice<UInt8>
    /// Relative to the start, from which alignment is counted.
    private(set) var position = 0

    init(_ bytes: some Collection<UInt8>) {
        self.bytes = ArraySlice(Array(bytes))
    }

    var isAtEnd: Bool { position >= bytes.count }

    mutating func align(to alignment: Int) {
        position += (alignment - position % alignment) % alignment
    }

    mutating func byte() -> UInt8? {
        guard position < bytes.count else { return nil }
        defer { position += 1 }
        return bytes[position]
    }

    mutating func uint32() -> UInt32? {
        align(to: 4)
        guard position + 4 <= bytes.count else { return nil }
        defer { position += 4 }
        return (0..<4).reduce(0) { $0 | UInt32(bytes[position + $1]) << ($1 * 8) }
    }

    mutating func string() -> String? {
        uint32().flatMap { text(length: Int($0)) }
    }

    mutating func signature() -> String? {
        byte().flatMap { text(length: Int($0)) }
    }

    private mutating func text(length: Int) -> String? {
        guard position + length + 1 <= bytes.count else { return nil }
        defer { position += length + 1 }
        return String(decoding: bytes[position..<position + length], as: UTF8.self)
    }
}
