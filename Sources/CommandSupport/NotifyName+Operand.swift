// SPDX-License-Identifier: Apache-2.0

package import NotifyCore

extension NotifyName {
    /// The name given by an operand. One that would not leave this process is refused: to post it or to wait for it in a
    /// process of its own has no effect.
    ///
    /// - Parameter consequence: follows "is not a valid name" in the message, as in ", so nothing was posted".
    package init(operand: Argument, consequence: String = "") throws(UsageError) {
        do throws(NotifyBusError) {
            try self.init(utf8: operand.bytes)
        } catch {
            throw UsageError("\(operand.quoted) is not a valid name\(consequence): \(error.description)")
        }
        if staysInProcess {
            throw UsageError("\(operand.quoted) reaches no other program\(consequence): \(NotifyName.confinement)")
        }
    }

    /// Why a `self.` name is of no use to a command.
    package static let confinement = "a name that begins with 'self.' stays in the process that posts it"
}

extension NamePrefix {
    /// The prefix given by an operand that ends in `.*`, or is `*`; nil for any other operand.
    package init?(operand: Argument) throws(UsageError) {
        guard let text = operand.string, let prefix = NamePrefix(pattern: text) else { return nil }
        guard prefix.string.utf8.count <= NotifyName.maximumLength else {
            throw UsageError(
                "\(operand.quoted) is not valid: at most \(NotifyName.maximumLength) bytes can come before the '*'"
            )
        }
        if prefix.staysInProcess {
            throw UsageError("\(operand.quoted) matches nothing from other programs: \(NotifyName.confinement)")
        }
        self = prefix
    }
}
