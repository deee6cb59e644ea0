// SPDX-License-Identifier: Apache-2.0

package import NotifyCore

extension NotifyName {
    /// The name that an operand is.
    ///
    /// - Parameter consequence: what is said after "is no name", such as ", so nothing was posted".
    package init(operand: Argument, consequence: String = "") throws(UsageError) {
        do throws(NotifyBusError) {
            try self.init(utf8: operand.bytes)
        } catch {
            throw UsageError("\(operand.quoted) is not a valid name\(consequence): \(error.description)")
        }
    }
}
