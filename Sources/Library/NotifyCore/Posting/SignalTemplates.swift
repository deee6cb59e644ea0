// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The bytes of recently posted signals, so that posting a name again only takes a copy.
struct SignalTemplates {
    enum Outcome {
        case whole
        case part(rest: ArraySlice<UInt8>)
        case full
        case failed
    }

    /// The signal of one name. The bytes are kept; only the serial is rewritten for each post.
    private final class Template {
        let name: NotifyName
        let bytes: UnsafeMutableRawBufferPointer

        init(of name: NotifyName) {
            self.name = name
            let signal = OutgoingMessage.post(name).bytes(serial: 1) ?? []
            bytes = .allocate(byteCount: signal.count, alignment: 4)
            bytes.copyBytes(from: signal)
        }

        deinit { bytes.deallocate() }

        func setSerial(_ serial: UInt32) {
            // A name is always a valid text.
            guard bytes.count > 0 else { return }
            bytes.storeBytes(of: serial.littleEndian, toByteOffset: SignalTemplates.serialOffset, as: UInt32.self)
        }
    }

    /// How many are kept, at about 300 bytes each.
    private static let limit = 1_024
    /// The position of the serial in a message. See the D-Bus specification, "Message Format".
    private static let serialOffset = 8

    /// Of names that share a hash, the last is kept; the other costs as much as a name that is posted for the first
    /// time.
    private var templates = ObjectTable<Template>()

    mutating func bytes(for name: NotifyName, serial: UInt32) -> UnsafeRawBufferPointer {
        let template = template(of: name)
        template.setSerial(serial)
        return UnsafeRawBufferPointer(template.bytes)
    }

    /// Writes the signal to a socket that never blocks.
    mutating func write(_ name: NotifyName, serial: UInt32, to descriptor: Int32) -> Outcome {
        let bytes = bytes(for: name, serial: serial)
        switch BusOutput.send(bytes, to: descriptor) {
        case nil: return .failed
        case 0: return .full
        case bytes.count: return .whole
        case let count?: return .part(rest: Array(bytes)[count...])
        }
    }

    private mutating func template(of name: NotifyName) -> Template {
        let hash = name.storage.hash
        if let template = templates[hash], template.name == name { return template }
        if templates.count >= SignalTemplates.limit { templates.removeAll() }
        let template = Template(of: name)
        templates.set(template, for: hash)
        return template
    }
}
