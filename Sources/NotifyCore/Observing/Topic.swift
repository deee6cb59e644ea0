// SPDX-License-Identifier: Apache-2.0

/// What an observing connection listens for: a name or a prefix, and who wants it.
///
/// `@unchecked Sendable`: the variables are touched only with the lock of the `Registry` (or of the `ProcessHub`) held
/// that has the topic, except `generation`, which only the thread that reads touches.
final class Topic: @unchecked Sendable {
    enum Key: Equatable {
        case name(NotifyName)
        case prefix(NamePrefix)

        func matches(_ name: NotifyName) -> Bool {
            switch self {
            case .name(let wanted): wanted == name
            case .prefix(let prefix): prefix.begins(name)
            }
        }
    }

    enum State {
        /// The match rules are on their way to the bus.
        case adding
        /// The bus has them: every later post is heard.
        case active
        /// They were on a bus that went away, and will be made again.
        case lost
        case failed(NotifyBusError)
    }

    let key: Key
    let rules: [String]
    /// What a signal that carries the name looks like, for a topic that is one.
    let shape: PostShape
    var observers: [Observer] = []
    var state = State.adding
    /// Whether somebody waits for a bus that is not there yet, or away.
    var waitsForBus = false
    /// Whether posts of it were heard on some connection, so that some may have been missed since.
    var wasActive = false
    /// Whether it is to be live again, or at last, before the center says that the bus is back.
    var isOwed = false
    /// How many of the rules the bus has yet to answer for.
    var unanswered = 0
    /// The connection that the rules were sent on.
    var generation = 0

    init(_ key: Key) {
        self.key = key
        switch key {
        case .name(let name):
            rules = [MatchRule.name(name)]
            shape = PostShape(of: name)
        case .prefix(let prefix):
            rules = MatchRule.prefix(prefix.string)
            shape = PostShape()
        }
    }
}
