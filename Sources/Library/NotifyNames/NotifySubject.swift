// SPDX-License-Identifier: Apache-2.0

/// What an observer hears: names, and prefixes of names. The module NotifyBus has the public form.
package struct NotifySubject: Hashable, Sendable {
    package let names: [NotifyName]
    package let prefixes: [NamePrefix]

    package init(names: [NotifyName] = [], prefixes: [NamePrefix] = []) {
        self.names = names
        self.prefixes = prefixes
    }

    package static func names(_ names: [NotifyName]) -> NotifySubject { NotifySubject(names: names) }
    package static func prefix(_ prefix: String) -> NotifySubject { NotifySubject(prefixes: [NamePrefix(prefix)]) }
    package static var everything: NotifySubject { prefix("") }
}

extension NotifySubject: CustomStringConvertible {
    /// The subject in words: “com.example.done or every name that begins with com.example.config.”.
    package var description: String {
        let prefixes = prefixes.map { $0.string.isEmpty ? "every name" : "every name that begins with \($0)" }
        let parts = names.map(\.description) + prefixes
        guard let last = parts.last else { return "nothing" }
        return parts.count == 1 ? last : parts.dropLast().joined(separator: ", ") + " or " + last
    }
}
