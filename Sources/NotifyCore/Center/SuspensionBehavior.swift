// SPDX-License-Identifier: Apache-2.0

extension NotifyCenter {
    /// What an observer requests while its program is in the background. Accepted and ignored.
    ///
    /// Darwin's notify center ignores it too: it is an option of the distributed center, and exists here so that code
    /// for Apple's systems compiles unchanged. What an observer receives depends only on the state of its program.
    public enum SuspensionBehavior: Int, Hashable, Sendable, CaseIterable {
        /// Deliver nothing while in the background.
        case drop = 1
        /// Deliver the last notification of a name later.
        case coalesce = 2
        /// Deliver all notifications later.
        case hold = 3
        /// Deliver immediately even so.
        case deliverImmediately = 4
    }
}
