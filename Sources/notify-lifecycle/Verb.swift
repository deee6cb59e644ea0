// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// What the first operand asks for.
enum Verb: String, CaseIterable {
    case list, status, launches, watch
    case foreground, background, suspend, resume, release

    var meaning: String {
        switch self {
        case .list: "Shows every observer: its process, state and numbers."
        case .status: "Shows what the agent says about itself."
        case .launches: "Shows what is started when a name is posted, and how far it is."
        case .watch: "Shows the observers, and then each change of a state, until a signal ends it."
        case .foreground: "Delivers every post to the TARGETs."
        case .background: "Drops every post for the TARGETs."
        case .suspend: "Keeps one post of each name for the TARGETs, until they are resumed."
        case .resume: "Puts the TARGETs in the foreground, with what was kept for them."
        case .release: "Forgets what was set for the TARGETs, or for all: the program and the desktop decide again."
        }
    }

    /// Whether it says whom it means.
    var takesTargets: Bool {
        switch self {
        case .list, .status, .launches, .watch: false
        case .foreground, .background, .suspend, .resume, .release: true
        }
    }

    /// The state that it puts targets in; nil if it changes nothing.
    var state: NotifyCenter.LifecycleState? {
        switch self {
        case .list, .status, .launches, .watch, .release: nil
        case .foreground, .resume: .foreground
        case .background: .background
        case .suspend: .suspended
        }
    }
}
