// SPDX-License-Identifier: Apache-2.0

extension NotifyCenter {
    /// What an observer asks for while its program is in the background. Accepted, and ignored.
    ///
    /// Darwin's notify center ignores it too: it is an option of the distributed center, and stands here so that code
    /// written for Apple's systems can be brought over as it is. What an observer gets depends on its program's state
    /// alone.
    public enum SuspensionBehavior: Int, Hashable, Sendable, CaseIterable {
        /// Deliver nothing while in the background.
        case drop = 1
        /// Deliver the last notification of a name later.
        case coalesce = 2
        /// Deliver all notifications later.
        case hold = 3
        /// Deliver at once all the same.
        case deliverImmediately = 4
    }
}
