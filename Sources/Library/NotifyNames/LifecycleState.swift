// SPDX-License-Identifier: Apache-2.0

/// What a program's observers receive. `NotifyCenter.Lifecycle.State` is the public form, which can grow.
package enum LifecycleState: String, Hashable, Sendable, CaseIterable {
    /// Every post.
    case foreground
    /// Nothing, then or later.
    case background
    /// Nothing for now; when the program is resumed, one delivery for each registration whose name was posted
    /// meanwhile.
    case suspended
}
