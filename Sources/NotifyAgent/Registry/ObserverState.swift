// SPDX-License-Identifier: Apache-2.0

/// What an observing connection is in, by its name on the wire.
package enum ObserverState: String, Sendable, CaseIterable {
    /// Gets every post.
    case foreground
    /// Gets nothing, then or later.
    case background
    /// Gets one delivery for each name posted meanwhile, at resume.
    case suspended
}
