// SPDX-License-Identifier: Apache-2.0

/// The bytes of the signals that were posted lately, so that a repeated post is a copy.
struct SignalTemplates {
    enum Outcome {
        case whole
        case part(rest: ArraySlice<UInt8>)
        case full
        case failed
    }

    private struct Template {
        let name: NotifyName
        var bytes: [UInt8]
    }

    /// How many are kept: about 300 bytes each.
    private static let limit = 1_024
    /// Where the serial stands in a message. See the D-Bus specification, "Message Format".
    private static let serialOffset = 8

    /// By the hash of the wire, which every name has with it. Of names that share one the last is kept: it costs as much
    /// as a name that is posted for the first time.
    private var templates: [UInt64: Template] = [:]

    mutating func bytes(for name: NotifyName, serial: UInt32) -> [UInt8] {
        let index = prepare(name, serial: serial)
        return templates.values[index].bytes
    }

    /// Writes the signal to a socket that never waits.
    mutating func write(_ name: NotifyName, serial: UInt32, to descriptor: Int32) -> Outcome {
        let index = prepare(name, serial: serial)
        let total = templates.values[index].bytes.count
        let written = templates.values[index].bytes.withUnsafeBytes { sendWithoutWaiting($0, to: descriptor) }
        switch written {
        case nil: return .failed
        case 0: return .full
        case total: return .whole
        case let count?: return .part(rest: templates.values[index].bytes[count...])
        }
    }

    /// Finds or makes the bytes of a name, and writes the serial into them where they stand.
    private mutating func prepare(_ name: NotifyName, serial: UInt32) -> Dictionary<UInt64, Template>.Index {
        let hash = name.storage.hash
        if let index = templates.index(forKey: hash), templates.values[index].name == name {
            templates.values[index].bytes.withUnsafeMutableBytes { bytes in
                bytes.storeBytes(of: serial, toByteOffset: SignalTemplates.serialOffset, as: UInt32.self)
            }
            return index
        }
        if templates.count >= SignalTemplates.limit { templates.removeAll(keepingCapacity: true) }
        templates[hash] = Template(name: name, bytes: BusConnection.signalBytes(for: name, serial: serial))
        return templates.index(forKey: hash) ?? templates.startIndex
    }
}
