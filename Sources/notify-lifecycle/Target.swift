// SPDX-License-Identifier: Apache-2.0

import CommandSupport

/// Whose state is to be changed, as the agent wants it written.
struct Target {
    let text: String

    /// All that there are, as the agent's Release has it.
    static let everyone = Target(text: "")

    /// For people.
    var title: String { text.isEmpty ? "everyone" : text }

    private init(text: String) {
        self.text = text
    }

    init(_ argument: Argument) throws(UsageError) {
        guard let text = argument.string, let target = Target.normalized(text) else {
            throw UsageError(
                "\(argument.quoted) is no TARGET; write pid:N for a process, :1.N for a connection or app:ID for an "
                    + "application"
            )
        }
        self.text = target
    }

    private static func normalized(_ text: String) -> String? {
        if text.hasPrefix(":") {
            // Both bus daemons make unique names of two numbers.
            let parts = text.dropFirst().split(separator: ".", omittingEmptySubsequences: false)
            return parts.count == 2 && parts.allSatisfy(isNumber) && text.utf8.count <= 255 ? text : nil
        }
        if text.hasPrefix("app:") { return text.utf8.count > 4 ? text : nil }
        let digits = text.hasPrefix("pid:") ? text.dropFirst(4) : text[...]
        guard isNumber(digits), let process = Int32(digits), process > 0 else { return nil }
        return "pid:\(process)"
    }

    private static func isNumber(_ text: Substring) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }
}
