// SPDX-License-Identifier: Apache-2.0

import NotifyCore
import NotifyNames

extension Oracle {
    /// What is promised to an observer now.
    struct Contract {
        /// The state that was promised; nil while a change is under way.
        var known: LifecycleState?
        /// Why nothing certain is promised.
        var row = Row.stopped
        /// While nothing certain is: whether posts may be dropped, and whether they may be replayed.
        var mayDrop = false
        var mayReplay = false
        /// What was asked for last.
        var wanted: LifecycleState?
        /// Whether a person has set the state: the desktop does not change it then.
        var isByPerson = false
        /// Changes that were asked for and are not answered.
        var pending = 0
        /// Whether more has happened than these changes.
        var isDisturbed = false
        /// Whether nothing was ever promised: the first registration that is confirmed is heard from then on.
        var isNew = false
        /// Whether the bus has cut the connection off while posts were to be heard: their names are heard afterwards.
        var isCutOff = false
        /// Whether an agent has died with what it had noted for it.
        var agentLost = false
        /// How often each name may be heard, posted or not, and by which row.
        var unposted: UInt8 = 0
        var unpostedRow = Row.agentDied

        static func settled(_ state: LifecycleState?) -> Contract { Contract(known: state) }
    }

    struct Registration {
        let observer: Int
        let subject: Int
        /// The first post that is later than the registration's confirmation.
        var from: Int?
        var isCancelled = false
        /// Whether it was confirmed in a moment in which nothing certain was promised, or while suspended.
        var isLate = false
        /// Posts that are to be heard, once each.
        var due: UInt64 = 0
        /// Posts that may be heard: they came before the registration was confirmed, or while nothing certain was
        /// promised.
        var possible: UInt64 = 0
        /// Posts of which at least the name is to be heard.
        var cover: UInt64 = 0
        /// Posts that must not be heard themselves.
        var forbidden: UInt64 = 0
        /// Posts whose name may be heard instead, or as well: those that were made while the program was suspended, and
        /// those of the moments before and after.
        var replayable: UInt64 = 0
        var replayableToo: UInt64 = 0
        var heard: UInt64 = 0
        /// How often each name may be heard without a post, and by which row.
        var unposted: SIMD4<UInt8> = .zero
        var unpostedRow = Row.agentDied
    }
}
