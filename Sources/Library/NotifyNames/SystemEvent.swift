// SPDX-License-Identifier: Apache-2.0

/// A name that the agent posts when something happens to the machine or the session.
///
/// ``all`` is the single table of them: the agent's sources, notifybus-events(7), `<notify_keys.h>`, the constants of
/// `DarwinNotify` and the completion of names are all derived from it.
package struct SystemEvent: Sendable {
    package let name: NotifyName
    /// nil if the name is never posted here.
    package let source: Source?
    /// The C macro and Swift constant; nil if there is none.
    package let key: String?
    /// The name for which this is an alias: it is posted together with that one, while the alias is observed
    /// itself.
    package let original: NotifyName?
    /// For an alias: post it only when the state becomes this value.
    package let edge: UInt64?
    /// What has happened when the name is posted, as a sentence; or why it is never posted.
    package let meaning: String
    /// What its state means; empty if it is always 0.
    package let state: String

    /// Whether programs in sandboxes hear a post of this name, and learn its state.
    package static func reachesSandboxes(_ name: NotifyName) -> Bool { name != focus }

    init(
        _ name: NotifyName,
        _ source: Source?,
        _ key: String?,
        _ meaning: String,
        state: String = "",
        original: NotifyName? = nil,
        edge: UInt64? = nil
    ) {
        self.name = name
        self.source = source
        self.key = key
        self.meaning = meaning
        self.state = state
        self.original = original
        self.edge = edge
    }

    init(alias name: NotifyName, of original: NotifyName, _ source: Source, when edge: UInt64? = nil) {
        let meaning =
            switch edge {
            case nil: "An alias of \(original)."
            case 0: "Posted along with \(original) when its state becomes 0."
            default: "Posted along with \(original) when its state becomes 1."
            }
        self.init(name, source, nil, meaning, state: "that of the other name", original: original, edge: edge)
    }
}
