// SPDX-License-Identifier: Apache-2.0

package import NotifyCore

/// Where to look when the lifecycle agent does not do what it should.
package enum AgentHint {
    /// For the end of a sentence. Nobody knows how the agent of a bus was started that is neither of the usual two.
    package static func text(for bus: NotifyCenter.Bus?) -> String {
        switch (bus ?? .session).kind {
        case .session: "; see 'systemctl --user status notify-agent'"
        case .system: "; see 'systemctl status notify-agent'"
        case .address: ""
        }
    }
}
