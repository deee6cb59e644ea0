// SPDX-License-Identifier: Apache-2.0

extension Command {
    /// Removes the first operand and returns the subcommand that it names.
    package func takeSubcommand(from operands: inout [Argument]) throws(UsageError) -> String {
        let names = subcommands.map(\.name)
        guard !operands.isEmpty else {
            let list = names.dropLast().joined(separator: ", ") + " or " + (names.last ?? "")
            throw UsageError("missing command; use \(list)")
        }
        let operand = operands.removeFirst()
        if let name = names.first(where: { operand.bytes.elementsEqual($0.utf8) }) { return name }
        if let near = nearest(to: operand.bytes, among: names) {
            throw UsageError("unknown command \(operand.quoted); did you mean '\(near)'?")
        }
        throw UsageError("unknown command \(operand.quoted); see '\(name) --help'")
    }
}
