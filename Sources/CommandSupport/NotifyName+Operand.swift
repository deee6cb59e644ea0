// SPDX-License-Identifier: Apache-2.0

package import NotifyCore

extension NotifyName {
    /// The name given by an operand.
    ///
    /// - Parameter consequence: follows "is not a valid name" in the message, as in ", so nothing was posted".
    package init(operand: Argument, consequence: String = "") throws(UsageError) {
        do throws(NotifyBusError) {
            try self.init(utf8: operand.bytes)
        } catch {
            throw UsageError("\(operand.quoted) is not a valid name\(consequence): \(error.description)")
        }
    }
}
