// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import NotifyCore

/// `--hold`: has the agent keep logind from sleep or shutdown while the command runs for it.
struct Hold {
    /// What can be held.
    static let names: [NotifyName] = ["org.notifybus.system.willsleep", "org.notifybus.system.willshutdown"]

    private static let obstacle =
        "nothing waits for the command: a program in a sandbox can't delay sleep or shutdown"

    private let center: NotifyCenter
    private let wanted: [NotifyName]
    /// Which time of each the command is to run for, or runs.
    private var begun: [NotifyName: UInt64] = [:]

    static func names(among names: [NotifyName]) -> [NotifyName] { Hold.names.filter(names.contains) }

    /// Returns once the agent knows that it is to wait, or can't be told; then it will be once it is there.
    init(_ names: [NotifyName], in center: NotifyCenter, _ bus: NotifyCenter.Bus, _ diagnostics: Diagnostics) {
        self.center = center
        wanted = bus.isWhole ? Hold.names(among: names) : []
        if !bus.isWhole { diagnostics.notice(Hold.obstacle) }
        for name in wanted {
            do throws(AgentError) {
                _ = try center.hold(name)
            } catch {
                let reason =
                    switch error {
                    case .unreachable(let error): error.description
                    case .refused(let fault): fault.message
                    }
                diagnostics.notice("nothing waits for the command yet: \(reason)")
            }
        }
    }

    /// The command is to run for these.
    mutating func begin(_ names: [NotifyName]) {
        for name in wanted where names.contains(name) {
            if let number = try? center.hold(name) { begun[name] = number }
        }
    }

    /// Nothing runs any more, and nothing is due.
    mutating func end() {
        for (name, number) in begun { center.letGo(name, number) }
        begun = [:]
    }
}
