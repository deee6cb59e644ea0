// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore

/// The programs that Lomiri stops while nobody looks at them, and lets continue. It says so on the session bus, after it has
/// done it.
///
/// Anybody can say it, so nothing is believed: it is an occasion to look at these processes at once, instead of within a
/// second.
final class LomiriSource: Source {
    static let name = "lomiri"
    static let interfaces = ["com.lomiri.LomiriAppLaunch", "com.canonical.UbuntuAppLaunch"]
    /// More than an application has.
    private static let maximumProcesses = 256

    private let link: BusLink
    private weak var driver: SourceDriver?

    init(_ link: BusLink) { self.link = link }

    /// What speaks against it in this environment; nil if nothing does.
    static func obstacle(_ environment: [String: String]) -> String? {
        let desktops = (environment["XDG_CURRENT_DESKTOP"] ?? "").split(separator: ":")
        return desktops.contains { $0 == "Lomiri" || $0 == "Unity8" } ? nil : "$XDG_CURRENT_DESKTOP is not Lomiri"
    }

    private static let rules = interfaces.flatMap { interface in
        ["ApplicationPaused", "ApplicationResumed"].map { "type='signal',interface='\(interface)',member='\($0)'" }
    }

    func begin(on driver: SourceDriver) {
        self.driver = driver
        for rule in LomiriSource.rules { link.callBus("AddMatch", [.string(rule)]) }
        driver.isLive()
    }

    func end() {
        for rule in LomiriSource.rules { link.callBus("RemoveMatch", [.string(rule)]) }
        driver = nil
    }

    /// The processes of which a signal says that they were stopped, or continue: the ID of the application, and their
    /// numbers.
    static func processes(in signal: BusSignal) -> [Int32] {
        guard interfaces.contains(signal.interface), signal.arguments.count == 2, signal.arguments[0].string != nil,
            signal.member == "ApplicationPaused" || signal.member == "ApplicationResumed",
            let numbers = signal.arguments[1].elements
        else { return [] }
        return numbers.prefix(maximumProcesses).compactMap { value in
            value.uint64.flatMap { Int32(exactly: $0) }.flatMap { $0 > 0 ? $0 : nil }
        }
    }

    /// - Returns: the processes to look at.
    func handle(_ signal: BusSignal) -> [Int32] { LomiriSource.processes(in: signal) }
}
