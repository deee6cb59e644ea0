// SPDX-License-Identifier: Apache-2.0

import CDBusShim
import Glibc

extension BusConnection {
    /// How deep values may be nested; the specification allows 64, none of ours has more than five.
    private static let maximumDepth = 16
    /// How many values are read from one message: a value takes 40 bytes or more here, a byte on the wire.
    private static let maximumCount = 262_144

    /// The arguments of the message that `next` gave last.
    ///
    /// - Returns: nil if they are nested too deep or too many. Descriptors among them belong to the caller.
    func arguments() -> [BusValue]? {
        var reader = nb_reader()
        guard nb_read_message(raw, &reader) else { return [] }
        var budget = BusConnection.maximumCount
        return BusConnection.read(&reader, depth: 0, &budget)
    }

    private static func read(_ reader: inout nb_reader, depth: Int, _ budget: inout Int) -> [BusValue]? {
        guard depth < maximumDepth else { return nil }
        var values: [BusValue] = []
        while true {
            let code = UInt8(bitPattern: nb_read_type(&reader))
            guard code != 0 else { return values }
            budget -= 1
            guard budget > 0, let value = readOne(&reader, code: code, depth: depth, &budget) else {
                close(values)
                return nil
            }
            values.append(value)
            guard nb_read_next(&reader) else { return values }
        }
    }

    private static func readOne(
        _ reader: inout nb_reader,
        code: UInt8,
        depth: Int,
        _ budget: inout Int
    ) -> BusValue? {
        func inside() -> [BusValue]? {
            var inner = nb_reader()
            nb_read_enter(&reader, &inner)
            return read(&inner, depth: depth + 1, &budget)
        }
        switch code {
        case UInt8(ascii: "s"), UInt8(ascii: "o"), UInt8(ascii: "g"):
            return .text(code: code, String(cString: nb_read_string(&reader)))
        case UInt8(ascii: "d"):
            return .double(nb_read_double(&reader))
        case UInt8(ascii: "h"):
            return .descriptor(nb_read_descriptor(&reader))
        case UInt8(ascii: "a"):
            let signature = nb_read_element_signature(&reader)
            defer { nb_free_string(signature) }
            return inside().map { .array(element: signature.map { String(cString: $0) } ?? "", $0) }
        case UInt8(ascii: "r"):
            return inside().map { .structure($0) }
        case UInt8(ascii: "e"):
            guard let pair = inside() else { return nil }
            guard pair.count == 2 else {
                close(pair)
                return nil
            }
            return .entry(pair[0], pair[1])
        case UInt8(ascii: "v"):
            return inside()?.first.map { .variant($0) }
        default:
            return .number(code: code, nb_read_number(&reader))
        }
    }

    /// Closes the descriptors among values that nobody will look at.
    static func close(_ values: [BusValue]) {
        for value in values {
            switch value {
            case .descriptor(let descriptor): if descriptor >= 0 { Glibc.close(descriptor) }
            case .array(_, let elements), .structure(let elements): close(elements)
            case .entry(let key, let value): close([key, value])
            case .variant(let value): close([value])
            case .number, .double, .text: break
            }
        }
    }

    /// What kind of message to send.
    enum Draft {
        case call(destination: String, path: String, interface: String, member: String, activates: Bool)
        case oneWayCall(destination: String, path: String, interface: String, member: String)
        case signal(destination: String?, path: String, interface: String, member: String)
        case reply(destination: String, serial: UInt32)
        case error(destination: String, serial: UInt32, name: String)
    }

    /// Sends a message.
    ///
    /// - Returns: its serial; 0 when it is not valid or memory ran out.
    func send(_ draft: Draft, _ arguments: [BusValue]) -> UInt32 {
        let message: OpaquePointer?
        switch draft {
        case .call(let destination, let path, let interface, let member, let activates):
            message = nb_draft_call(destination, path, interface, member)
            if let message, !activates { nb_draft_without_activation(message) }
        case .oneWayCall(let destination, let path, let interface, let member):
            message = nb_draft_call(destination, path, interface, member)
            if let message {
                nb_draft_without_activation(message)
                nb_draft_without_reply(message)
            }
        case .signal(let destination, let path, let interface, let member):
            message = nb_draft_signal(destination, path, interface, member)
        case .reply(let destination, let serial):
            message = nb_draft_reply(destination, serial)
        case .error(let destination, let serial, let name):
            message = nb_draft_error(destination, serial, name)
        }
        guard let message else { return 0 }
        var writer = nb_writer()
        nb_write_message(message, &writer)
        for argument in arguments where !BusConnection.write(argument, to: &writer) {
            nb_discard(message)
            return 0
        }
        return nb_send(raw, message)
    }

    private static func write(_ value: BusValue, to writer: inout nb_writer) -> Bool {
        switch value {
        case .number(let code, let number): nb_write_number(&writer, CChar(code), number)
        case .double(let number): nb_write_double(&writer, number)
        case .text(let code, let text): nb_write_string(&writer, CChar(code), text)
        case .descriptor(let descriptor): nb_write_descriptor(&writer, descriptor)
        case .array(let element, let values): write(values, as: "a", element, to: &writer)
        case .structure(let values): write(values, as: "r", nil, to: &writer)
        case .entry(let key, let value): write([key, value], as: "e", nil, to: &writer)
        case .variant(let value): write([value], as: "v", value.signature, to: &writer)
        }
    }

    private static func write(
        _ values: [BusValue],
        as type: Unicode.Scalar,
        _ signature: String?,
        to writer: inout nb_writer
    ) -> Bool {
        var inner = nb_writer()
        guard nb_write_enter(&writer, CChar(type.value), signature, &inner) else { return false }
        for value in values where !write(value, to: &inner) {
            _ = nb_write_leave(&writer, &inner)
            return false
        }
        return nb_write_leave(&writer, &inner)
    }
}
