// SPDX-License-Identifier: Apache-2.0

package import NotifyCore
import NotifyNames

/// What can only be a mistake in a name. Any text may be one, so it is pointed out, and `--literal` takes it as it is.
package enum NameMistake {
    /// What may be wrong with names that are waited for: a line each.
    package static func lines(for names: [NotifyName]) -> [String] {
        names.compactMap { asterisk(in: $0) ?? event($0) }
    }

    /// An asterisk in what is taken for a name, in a line; nil if there is none.
    package static func asterisk(in name: NotifyName) -> String? {
        guard name.string.utf8.contains(UInt8(ascii: "*")) else { return nil }
        return "\(Printable.quoted(name.string)) is a name; only .* at the end is a pattern"
    }

    /// What is meant by a name that looks like an event's and is none, in a line; nil if it may well be a program's
    /// own.
    package static func event(_ name: NotifyName) -> String? {
        let text = name.string
        let isOurs = text.utf8.starts(with: "org.notifybus.".utf8)
        // Most names are neither, and need no table.
        guard isOurs || text.utf8.starts(with: "com.apple.".utf8) else { return nil }
        let events = SystemEvent.all
        if events.contains(where: { $0.name == name }) { return nil }
        let beginning = "no event has the name \(Printable.quoted(text))"
        if let meant = nearest(to: text, among: events) { return "\(beginning); did you mean \(meant)?" }
        let isReserved = isOurs && ["system.", "session."].contains { text.dropFirst(14).hasPrefix($0) }
        return isReserved ? "\(beginning); see notifybus-events(7)" : nil
    }

    private static func nearest(to text: String, among events: [SystemEvent]) -> NotifyName? {
        let lower = text.lowercased()
        if let same = events.first(where: { $0.name.string.lowercased() == lower }) { return same.name }
        // Programs from Apple's systems have names of their own there.
        guard ["org.notifybus.", "com.apple.system."].contains(where: { lower.hasPrefix($0) }) else { return nil }
        var word = lastWord(lower)
        let near = word.withUTF8 { bytes in
            nearestWord(to: UnsafeRawBufferPointer(bytes), among: events.map { lastWord($0.name.string.lowercased()) })
        }
        if let near, let event = events.first(where: { lastWord($0.name.string.lowercased()) == near }) {
            return event.name
        }
        // By the key of the event: 'lidclose' is about kNotifyBusLid.
        return events.first { event in
            guard let key = event.key?.lowercased(), key.hasPrefix("knotifybus") else { return false }
            return key.utf8.count > 12 && word.hasPrefix(key.dropFirst("knotifybus".count))
        }?.name
    }

    private static func lastWord(_ text: String) -> String {
        String(text[(text.lastIndex(of: ".").map { text.index(after: $0) } ?? text.startIndex)...])
    }

    /// The blank at an end of a name, as the rest of a sentence; nil if there is none.
    package static func blank(in bytes: UnsafeRawBufferPointer) -> String? {
        if let last = bytes.last, let word = blankWord(last) { return "ends with \(word)" }
        if let first = bytes.first, let word = blankWord(first) { return "begins with \(word)" }
        return nil
    }

    private static func blankWord(_ byte: UInt8) -> String? {
        switch byte {
        case UInt8(ascii: " "): "a space"
        case UInt8(ascii: "\t"): "a tab"
        case UInt8(ascii: "\r"): "a carriage return"
        case UInt8(ascii: "\n"): "a line feed"
        default: nil
        }
    }

    /// What to do if it is none.
    package static let remedy = "; if that is meant, use --literal"
}
