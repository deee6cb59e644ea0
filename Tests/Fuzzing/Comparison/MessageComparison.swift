// SPDX-License-Identifier: Apache-2.0

import CDBusReference
import Glibc
package import NotifyCore

/// Compares our reading of messages with that of libdbus.
package enum MessageComparison {
    /// How our reading of some bytes is wrong; nil if it is right.
    ///
    /// A message that libdbus accepts must be the same message for us. We check less, because libdbus also validates
    /// everything but posts; so a post that we accept must be a message for libdbus too.
    package static func fault(in bytes: UnsafeRawBufferPointer) -> String? {
        // libdbus requires the descriptors.
        let bytes = withoutDescriptorCount(bytes)
        return bytes.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return nil }
            let reference = reference_describe(start, bytes.count)
            defer { reference_free(reference) }
            guard let message = wholeMessage(bytes) else {
                return reference.map { "not a message, but for libdbus: \(String(cString: $0))" }
            }
            guard let reference else {
                return isSurelyPost(message) ? "a post that is no message for libdbus" : nil
            }
            // Nested too deeply for us, or too long a list.
            guard let ours = description(of: message) else { return nil }
            let theirs = UnsafeRawBufferPointer(start: reference, count: strlen(reference))
            if ours.elementsEqual(theirs) { return nil }
            return "\(String(decoding: ours, as: UTF8.self)) is for libdbus: \(String(decoding: theirs, as: UTF8.self))"
        }
    }

    /// Whether these bytes are one message for libdbus, apart from descriptors.
    package static func isMessage(_ bytes: UnsafeRawBufferPointer) -> Bool {
        withoutDescriptorCount(bytes).withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress, let reference = reference_describe(start, bytes.count) else {
                return false
            }
            reference_free(reference)
            return true
        }
    }

    /// The message in these bytes, if it ends exactly where they do.
    package static func wholeMessage(_ bytes: UnsafeRawBufferPointer) -> BusMessage? {
        guard case .known(let body, let end) = BusMessage.extent(of: bytes), end == bytes.count else { return nil }
        return BusMessage(bytes, bodyOffset: body)
    }

    private static func withoutDescriptorCount(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
        var copy = Array(bytes)
        if let place = wholeMessage(bytes)?.descriptorCountOffset, place > 0 {
            copy.replaceSubrange(place..<place + 4, with: [0, 0, 0, 0])
        }
        return copy
    }

    /// Whether it is a post that would be delivered, without strings that we don't check.
    private static func isSurelyPost(_ message: BusMessage) -> Bool {
        var names = NameCache()
        guard names.name(in: message) != nil, !message.hasUnknownFields, message.destination == nil,
            message.errorName == nil
        else { return false }
        guard let sender = message.sender else { return true }
        let text = String(cString: sender)
        return text.wholeMatch(of: /:[0-9]+\.[0-9]+/) != nil && text.utf8.count <= 255
    }

    private static func description(of message: BusMessage) -> [UInt8]? {
        var reader = BusValueReader(message.bodyReader)
        guard let values = reader.values(message.signature) else { return nil }
        var text: [UInt8] = []
        let isSilent = message.bytes[2] & 1 == 1
        text += "type=\(message.bytes[1]) serial=\(message.serial) reply=\(message.replySerial) ".utf8
        text += "silent=\(isSilent ? 1 : 0)\n".utf8
        let fields = [
            ("path", message.path), ("interface", message.interface), ("member", message.member),
            ("error", message.errorName), ("destination", message.destination), ("sender", message.sender),
        ]
        for case (let title, let value?) in fields {
            text += "\(title)=".utf8
            text += UnsafeRawBufferPointer(start: value, count: strlen(value))
            text += "\n".utf8
        }
        text += "signature=".utf8
        text += message.signature
        text += "\n".utf8
        for value in values { describe(value, &text) }
        return text
    }

    private static func describe(_ value: BusValue, _ text: inout [UInt8]) {
        func describe(_ title: String, _ values: [BusValue]) {
            text += "\(title)[".utf8
            for value in values { self.describe(value, &text) }
            text += "]".utf8
        }
        switch value {
        case .number(let code, let number): text += "\(Unicode.Scalar(code))\(number)".utf8
        case .double(let number): text += "d\(number.bitPattern)".utf8
        case .text(let code, let string): text += "\(Unicode.Scalar(code))\(string.utf8.count):\(string)".utf8
        case .descriptor: text += "h".utf8
        case .array(let element, let values): describe("a\(element)", values)
        case .structure(let values): describe("r", values)
        case .entry(let key, let value): describe("e", [key, value])
        case .variant(let value): describe("v", [value])
        }
        text += " ".utf8
    }
}
