// SPDX-License-Identifier: Apache-2.0

package import NotifyNames
package import NotifyWire

// Reads untrusted values: a value of another type, or an array with an element of another type, is nil.
extension BusValue {
    /// Whether the value, with everything in it, has a type.
    package func hasType(_ type: some StringProtocol) -> Bool {
        switch self {
        case .array(let element, let values):
            type.first == "a" && type.dropFirst() == element[...] && values.allSatisfy { $0.hasType(element) }
        case .number(let code, _), .text(let code, _): type.utf8.count == 1 && type.utf8.first == code
        case .variant: type == "v"
        case .double, .descriptor, .structure, .entry: signature == type
        }
    }

    package var exactUInt32: UInt32? {
        if case .number(UInt8(ascii: "u"), let value) = self { UInt32(exactly: value) } else { nil }
    }

    package var exactBoolean: Bool? {
        if case .number(UInt8(ascii: "b"), let value) = self, value <= 1 { value == 1 } else { nil }
    }

    package var exactStrings: [String]? {
        guard case .array("s", let values) = self else { return nil }
        var texts: [String] = []
        texts.reserveCapacity(values.count)
        for value in values {
            guard let text = value.string else { return nil }
            texts.append(text)
        }
        return texts
    }

    /// The dictionaries of an aa{sv}, each of which `read` understands.
    ///
    /// - Parameter key: the key under which the value is found.
    func entries<Entry>(
        of key: String,
        _ read: (BusValue) throws(ArgumentError) -> Entry
    ) throws(ArgumentError) -> [Entry] {
        guard hasType("aa{sv}"), let elements else {
            throw .mistyped(key: key, expected: "aa{sv}", given: signature)
        }
        var entries: [Entry] = []
        for element in elements { entries.append(try read(element)) }
        return entries
    }

    /// The entries of an a{sv}, without the variants around the values; nil if it is not one or has a duplicate key.
    package var exactDictionary: [String: BusValue]? {
        guard case .array("{sv}", let entries) = self else { return nil }
        var result: [String: BusValue] = [:]
        for entry in entries {
            guard case .entry(.text(UInt8(ascii: "s"), let key), .variant(let value)) = entry,
                result.updateValue(value, forKey: key) == nil
            else { return nil }
        }
        return result
    }
}

extension [BusValue] {
    package func haveTypes(of parameters: [Parameter]) -> Bool {
        count == parameters.count && zip(self, parameters).allSatisfy { $0.hasType($1.type) }
    }

    /// The argument at an index, whose type has been checked.
    package func read<Value>(_ index: Int, _ read: (BusValue) -> Value?) throws(ArgumentError) -> Value {
        guard indices.contains(index), let value = read(self[index]) else {
            throw .types(expected: "", given: map(\.signature).joined())
        }
        return value
    }

    /// The same for a type that values have by themselves.
    package func read<Value: ArgumentValue>(_ index: Int) throws(ArgumentError) -> Value {
        guard indices.contains(index), let value = try Value.read(self[index]) else {
            throw .types(expected: "", given: map(\.signature).joined())
        }
        return value
    }
}

/// What an argument of a message can be.
package protocol ArgumentValue: Equatable, Sendable {
    /// Its type in D-Bus notation.
    static var type: String { get }
    static func read(_ argument: BusValue) throws(ArgumentError) -> Self?
    var argument: BusValue { get }
}

extension Bool: ArgumentValue {
    package static let type = "b"
    package static func read(_ argument: BusValue) -> Bool? { argument.exactBoolean }
    package var argument: BusValue { .boolean(self) }
}

extension UInt32: ArgumentValue {
    package static let type = "u"
    package static func read(_ argument: BusValue) -> UInt32? { argument.exactUInt32 }
    package var argument: BusValue { .uint32(self) }
}

extension UInt64: ArgumentValue {
    package static let type = "t"
    package static func read(_ argument: BusValue) -> UInt64? { argument.uint64 }
    package var argument: BusValue { .uint64(self) }
}

extension String: ArgumentValue {
    package static let type = "s"
    package static func read(_ argument: BusValue) -> String? { argument.string }
    package var argument: BusValue { .string(self) }
}

extension [String]: ArgumentValue {
    package static var type: String { "as" }
    package static func read(_ argument: BusValue) -> [String]? { argument.exactStrings }
    package var argument: BusValue { .strings(self) }
}

extension LifecycleState: ArgumentValue {
    package static let type = "s"
    package static func read(_ argument: BusValue) throws(ArgumentError) -> LifecycleState? {
        guard let text = argument.string else { return nil }
        guard let state = LifecycleState(rawValue: text) else {
            throw .value("A state is 'foreground', 'background' or 'suspended'.")
        }
        return state
    }
    package var argument: BusValue { .string(rawValue) }
}

/// A dictionary that is read key by key.
package struct FieldReader {
    private(set) var rest: [String: BusValue]

    package init(_ value: BusValue?) throws(ArgumentError) {
        guard let fields = value?.exactDictionary else {
            throw .types(expected: "a{sv}", given: value?.signature ?? "")
        }
        rest = fields
    }

    /// Takes a value out; nil if the key is missing.
    package mutating func take<Value>(
        _ key: String,
        _ type: String,
        _ read: (BusValue) -> Value?
    ) throws(ArgumentError) -> Value? {
        guard let value = rest.removeValue(forKey: key) else { return nil }
        guard value.hasType(type), let result = read(value) else {
            throw .mistyped(key: key, expected: type, given: value.signature)
        }
        return result
    }

    /// Takes out a value that must be present.
    package mutating func need<Value>(
        _ key: String,
        _ type: String,
        _ read: (BusValue) -> Value?
    ) throws(ArgumentError) -> Value {
        guard let value = try take(key, type, read) else { throw .missing(key: key) }
        return value
    }
}
