// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore

/// The programs that Lomiri stops while the user is not looking at them, and lets continue. It says so on the session
/// bus, after it has done it.
///
/// Anybody can say it, so nothing is believed: it is an occasion to look at these processes at once, instead of within a
/// second.
final class LomiriSource: Source {
    static let name = "lomiri"
    static let interfaces = ["com.lomiri.LomiriAppLaunch", "com.canonical.UbuntuAppLaunch"]
    static let members = ["ApplicationPaused", "ApplicationResumed"]
    /// More than an application has.
    private static let maximumProcesses = 64

    private let link: BusLink

    init(_ link: BusLink) { self.link = link }

    /// Why this source can't be used in this environment; nil if it can.
    static func obstacle(_ environment: [String: String]) -> String? {
        let desktops = (environment["XDG_CURRENT_DESKTOP"] ?? "").split(separator: ":")
        return desktops.contains { $0 == "Lomiri" || $0 == "Unity8" } ? nil : "$XDG_CURRENT_DESKTOP is not Lomiri"
    }

    private static let rules = interfaces.flatMap { interface in
        members.map { "type='signal',interface='\(interface)',member='\($0)'" }
    }

    func begin(on driver: SourceDriver) {
        for rule in LomiriSource.rules { link.callBus("AddMatch", [.string(rule)]) }
        driver.isLive()
    }

    func end() {
        for rule in LomiriSource.rules { link.callBus("RemoveMatch", [.string(rule)]) }
    }

    /// The processes of which a signal says that they were stopped, or continue.
    ///
    /// Their numbers come behind the ID of the application and, since 2017, that of its instance. See
    /// com.canonical.UbuntuAppLaunch.xml of ubuntu-app-launch.
    ///
    /// - Returns: the processes to look at, each once: anybody can send numbers.
    func handle(_ signal: BusSignal) -> Set<Int32> {
        guard LomiriSource.interfaces.contains(signal.interface), LomiriSource.members.contains(signal.member),
            (2...3).contains(signal.arguments.count), let numbers = signal.arguments.last?.elements
        else { return [] }
        let processes = numbers.prefix(LomiriSource.maximumProcesses).compactMap { value in
            value.uint64.flatMap { Int32(exactly: $0) }.flatMap { $0 > 0 ? $0 : nil }
        }
        return Set(processes)
    }
}
