// SPDX-License-Identifier: Apache-2.0

import CDBusShim
import Glibc

/// Reads the arguments of a message. See the D-Bus specification, "Type System".
package struct BusValueReader {
    /// How deeply values may be nested; the specification allows 64, none of ours has more than five.
    private static let maximumDepth = 16
    /// How many values are read from one message: a value takes 40 bytes or more here, but may take one byte on the
    /// wire.
    package static let maximumCount = 262_144

    private(set) var wire: WireReader
    private var budget: Int

    /// - Parameter maximumCount: how many values are read at most.
    package init(_ wire: WireReader, maximumCount: Int = BusValueReader.maximumCount) {
        self.wire = wire
        budget = maximumCount
    }

    /// Reads values of these types.
    ///
    /// - Returns: nil if they are missing, nested too deeply or too many. Descriptors among them belong to the caller.
    package mutating func values(
        _ types: UnsafeRawBufferPointer,
        depth: Int = 0,
        _ descriptors: MessageDescriptors? = nil
    ) -> [BusValue]? {
        guard depth < BusValueReader.maximumDepth else { return nil }
        var values: [BusValue] = []
        var rest = types
        while !rest.isEmpty {
            guard let count = BusValueReader.firstType(of: rest),
                let value = value(UnsafeRawBufferPointer(rebasing: rest[..<count]), depth, descriptors)
            else {
                values.closeDescriptors()
                return nil
            }
            values.append(value)
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        }
        return values
    }

    private mutating func value(
        _ type: UnsafeRawBufferPointer,
        _ depth: Int,
        _ descriptors: MessageDescriptors?
    ) -> BusValue? {
        guard budget > 0 else { return nil }
        budget -= 1
        let code = type[0]
        switch code {
        case UInt8(ascii: "y"): return wire.byte().map { .number(code: code, UInt64($0)) }
        case UInt8(ascii: "n"), UInt8(ascii: "q"): return wire.uint16().map { .number(code: code, UInt64($0)) }
        case UInt8(ascii: "b"), UInt8(ascii: "i"), UInt8(ascii: "u"):
            return wire.uint32().map { .number(code: code, UInt64($0)) }
        case UInt8(ascii: "x"), UInt8(ascii: "t"): return wire.uint64().map { .number(code: code, $0) }
        case UInt8(ascii: "d"): return wire.uint64().map { .double(Double(bitPattern: $0)) }
        case UInt8(ascii: "h"): return wire.uint32().map { .descriptor(descriptors?.take($0) ?? -1) }
        case UInt8(ascii: "s"), UInt8(ascii: "o"):
            return wire.string().map { .text(code: code, String(decoding: $0, as: UTF8.self)) }
        case UInt8(ascii: "g"):
            return wire.signature().map { .text(code: code, String(decoding: $0, as: UTF8.self)) }
        case UInt8(ascii: "v"):
            guard let inner = wire.signature(), BusValueReader.firstType(of: inner) == inner.count,
                let values = values(inner, depth: depth + 1, descriptors)
            else { return nil }
            return values.first.map { .variant($0) }
        case UInt8(ascii: "a"):
            return array(UnsafeRawBufferPointer(rebasing: type[1...]), depth, descriptors)
        default:
            guard wire.align(to: 8) else { return nil }
            let inner = UnsafeRawBufferPointer(rebasing: type[1..<type.count - 1])
            guard let values = values(inner, depth: depth + 1, descriptors) else { return nil }
            if code == UInt8(ascii: "(") { return .structure(values) }
            guard values.count == 2 else {
                values.closeDescriptors()
                return nil
            }
            return .entry(values[0], values[1])
        }
    }

    private mutating func array(
        _ element: UnsafeRawBufferPointer,
        _ depth: Int,
        _ descriptors: MessageDescriptors?
    ) -> BusValue? {
        guard depth + 1 < BusValueReader.maximumDepth,
            let end = wire.arrayEnd(alignment: BusValueReader.alignment(of: element[0]))
        else { return nil }
        var values: [BusValue] = []
        while wire.position < end {
            guard let value = value(element, depth + 1, descriptors) else {
                values.closeDescriptors()
                return nil
            }
            values.append(value)
        }
        guard wire.position == end else {
            values.closeDescriptors()
            return nil
        }
        return .array(element: String(decoding: element, as: UTF8.self), values)
    }

    /// How many characters the first complete type of a signature has; nil if there is none.
    private static func firstType(of types: UnsafeRawBufferPointer) -> Int? {
        guard let code = types.first else { return nil }
        let rest = UnsafeRawBufferPointer(rebasing: types[1...])
        switch code {
        case UInt8(ascii: "a"): return firstType(of: rest).map { $0 + 1 }
        case UInt8(ascii: "("): return members(of: rest, until: UInt8(ascii: ")")).map { $0 + 2 }
        case UInt8(ascii: "{"): return members(of: rest, until: UInt8(ascii: "}")).map { $0 + 2 }
        case UInt8(ascii: ")"), UInt8(ascii: "}"): return nil
        default: return "ybnqiuxtdhsogv".utf8.contains(code) ? 1 : nil
        }
    }

    /// How many characters the members of a structure have, of which there must be at least one.
    private static func members(of types: UnsafeRawBufferPointer, until closing: UInt8) -> Int? {
        var count = 0
        while count < types.count, types[count] != closing {
            guard let next = firstType(of: UnsafeRawBufferPointer(rebasing: types[count...])) else { return nil }
            count += next
        }
        return count > 0 && count < types.count ? count : nil
    }

    package static func alignment(of code: UInt8) -> Int {
        switch code {
        case UInt8(ascii: "y"), UInt8(ascii: "g"), UInt8(ascii: "v"): 1
        case UInt8(ascii: "n"), UInt8(ascii: "q"): 2
        case UInt8(ascii: "x"), UInt8(ascii: "t"), UInt8(ascii: "d"), UInt8(ascii: "("), UInt8(ascii: "{"): 8
        default: 4
        }
    }
}

extension BusMessage {
    /// The arguments, which may be requested once.
    ///
    /// - Returns: nil if they are nested too deeply or are too many, or are those of a call that is not valid: many calls
    ///   are refused whatever they ask for, so they are validated only here. Descriptors among them belong to the caller.
    package func arguments() -> [BusValue]? {
        if kind == .call, !isValid { return nil }
        var reader = BusValueReader(bodyReader)
        return reader.values(signature, descriptors)
    }

    /// Asks libdbus, which validates messages more thoroughly than the reader: not every bus checks what it passes on.
    var isValid: Bool {
        guard let start = bytes.baseAddress else { return false }
        guard descriptorCount > 0 else { return nb_is_message(start, bytes.count) }
        // libdbus would look for the descriptors.
        var copy = Array(bytes)
        copy.replaceSubrange(descriptorCountOffset..<descriptorCountOffset + 4, with: repeatElement(0, count: 4))
        return nb_is_message(copy, copy.count)
    }
}

extension WireReader {
    /// Skips values of these types.
    package mutating func skip(_ types: UnsafeRawBufferPointer) -> Bool {
        var reader = BusValueReader(self)
        guard reader.values(types) != nil else { return false }
        self = reader.wire
        return true
    }
}

/// The descriptors that came with a message. Those that are not taken are closed.
///
/// `@unchecked Sendable`: they belong to the message that they came with, which is read on one thread.
package final class MessageDescriptors: @unchecked Sendable {
    package let all: [Int32]
    private var isTaken: [Bool]

    package init(_ all: [Int32]) {
        self.all = all
        isTaken = Array(repeating: false, count: all.count)
    }

    deinit {
        for (descriptor, isTaken) in zip(all, isTaken) where !isTaken { Glibc.close(descriptor) }
    }

    /// A descriptor by its index in the message: a duplicate if it has been taken already, and -1 if there is none, as
    /// when this process could open no more.
    package func take(_ place: UInt32) -> Int32 {
        guard let place = Int(exactly: place), place < all.count else { return -1 }
        if isTaken[place] { return fcntl(all[place], F_DUPFD_CLOEXEC, 0) }
        isTaken[place] = true
        return all[place]
    }
}
