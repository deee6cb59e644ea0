// SPDX-License-Identifier: Apache-2.0

import NotifyCore
import NotifyNames

extension Oracle {
    /// What an observer is promised now.
    struct Contract: Hashable {
        /// The state that was promised; nil while a change is under way.
        var known: LifecycleState?
        /// Why nothing definite is promised.
        var row = Row.stopped
        /// While nothing definite is promised: whether posts may be dropped, and whether they may be replayed.
        var mayDrop = false
        var mayReplay = false
        /// The state that was requested last.
        var wanted: LifecycleState?
        /// Whether a person has set the state: the desktop does not change it then.
        var isByPerson = false
        /// The number of requested changes that have not been answered.
        var pending = 0
        /// Whether anything besides these changes has happened.
        var isDisturbed = false
        /// Whether that is only that its program was stopped: states that are answered after that are promised.
        var isOnlyStopped = false
        /// Whether nothing was ever promised. From its first confirmed registration on, it hears posts.
        var isNew = false
        /// Whether the bus cut the connection off while posts had to be heard. Their names are heard afterwards.
        var isCutOff = false
        /// Whether an agent has died and what it had noted for the observer is lost.
        var agentLost = false
        /// How often each name may be heard, posted or not, and which row allows that.
        var unposted: UInt8 = 0
        var unpostedRow = Row.agentDied
        /// What the bus had read of what the program tells the agent when that noticed that it was stopped: a bit for each
        /// subject.
        var told: UInt8 = 0
        /// What the agent may not have heard for a stopped program when it ended its connection, until that has registered
        /// again.
        var unheard: UInt8 = 0

        static func settled(_ state: LifecycleState?) -> Contract { Contract(known: state) }
    }

    struct Registration: Hashable {
        let observer: Int
        let subject: Int
        /// The first post after the registration was confirmed.
        var from: Int?
        var isCancelled = false
        /// Posts that must be heard, each once.
        var due: UInt64 = 0
        /// Posts that may be heard. They were made before the registration was confirmed, or while nothing definite was
        /// promised.
        var possible: UInt64 = 0
        /// Posts of which at least the name must be heard.
        var cover: UInt64 = 0
        /// Posts that must not be heard themselves.
        var forbidden: UInt64 = 0
        /// Posts whose name may be heard instead or in addition: those made while the program was suspended, and those
        /// made shortly before and after that.
        var replayable: UInt64 = 0
        var replayableToo: UInt64 = 0
        var heard: UInt64 = 0
        /// How often each name may be heard without a post, and which row allows that.
        var unposted: SIMD4<UInt8> = .zero
        var unpostedRow = Row.agentDied
    }
}
