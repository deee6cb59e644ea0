// SPDX-License-Identifier: Apache-2.0

package import NotifyCoordinator
import NotifyCore
package import NotifyNames

extension Agent {
    /// What is reported to the program that runs the agent.
    package enum Report: Sendable {
        /// The agent owns its name.
        case ready
        /// Another agent owns the name.
        case nameIsTaken(owner: UInt32?)
        /// Another agent has taken over the name.
        case wasReplaced
        /// The agent has yet to own its name, as the one before it has yet to hand over; the bus and that agent answer.
        case predecessorAnswers
        case refused(String)
        case busIsLost(NotifyBusError)
    }

    package struct Configuration: Sendable {
        /// Applications that stay in the foreground.
        package var exemptApplications: Set<String> = []
        /// Which facts may put which programs in the background.
        package var facts = FactPolicy()
        /// How much of the agent's resources one user may use.
        package var quotas = Quotas()
        /// What is wrong with the settings, and so without effect: a sentence for each line, for Status.
        package var faults: [String] = []
        /// The program's version, for Status.
        package var version = ""
        /// Whether events of the machine and the session are posted.
        package var postsEvents = true
        /// Names to post when a file changes.
        package var files: [(name: NotifyName, path: String)] = []
        /// Names whose state is kept even if they are not observed, and their initial states.
        package var pinnedStates: [NotifyName: UInt64] = [:]
        /// What programs in sandboxes may hear by the relay.
        package var relay = RelayRules()
        /// Which programs nap while the user is not looking at them.
        package var naps: [NapRule] = []
        /// What runs `notify-agent`, to let programs continue that nap if the agent is killed; nil if nothing is to.
        package var ownProgram: String?
        /// Whether to take over the name from another agent.
        package var replaces = false
        /// What the agent before this one has left with the service manager.
        package var bequest: Bequest?

        package init() {}
    }
}
