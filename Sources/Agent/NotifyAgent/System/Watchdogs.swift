// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// Which processes the service manager would kill if they were stopped, because they no longer tell it that they are alive. See
/// WatchdogSec= in systemd.service(5).
final class Watchdogs {
    /// More than a program that people look at has.
    private static let maximumUnits = 16
    /// How long the service manager may take to answer, in milliseconds.
    private static let limit: Int64 = 2_000

    private let link: BusLink
    private let loop: EventLoop
    private let servesMachine: Bool

    init(_ link: BusLink, on loop: EventLoop, servesMachine: Bool) {
        (self.link, self.loop, self.servesMachine) = (link, loop, servesMachine)
    }

    /// - Parameter completion: called with the reason for which these must not be stopped, or nil. At once if none of them
    ///   runs in a service.
    func check(_ processes: [ProcessHandle], then completion: @escaping (String?) -> Void) {
        var units: [String] = []
        for process in processes {
            let cgroups = process.read { $0.cgroups } ?? []
            // Of users' units only their own service manager knows.
            guard let unit = cgroups.lazy.compactMap({ AppIdentity.unit(ofCgroup: $0) }).first,
                unit.isOfUser != servesMachine, unit.name.hasSuffix(".service"), !units.contains(unit.name)
            else { continue }
            units.append(unit.name)
        }
        check(units.prefix(Watchdogs.maximumUnits), then: completion)
    }

    private func check(_ units: ArraySlice<String>, then completion: @escaping (String?) -> Void) {
        guard let unit = units.first else { return completion(nil) }
        var isAnswered = false
        let timer = loop.after(Watchdogs.limit) {
            if isAnswered { return }
            isAnswered = true
            completion("the service manager does not say whether \(unit.sentence) has a watchdog")
        }
        link.call(
            ServiceManager.name,
            path: UnitName.path(of: unit),
            interface: ServiceManager.properties,
            member: "Get",
            [.string(ServiceManager.service), .string("WatchdogUSec")]
        ) { [self] answer in
            if isAnswered { return }
            isAnswered = true
            loop.cancel(timer)
            // Without a service manager, or if it does not know the unit, nothing watches over it.
            guard case .success(let values) = answer, case .variant(.number(_, let time))? = values.first,
                // Without one it is 0, or infinity, which is all ones.
                let time = UInt64(exactly: time), time > 0, time < .max
            else { return check(units.dropFirst(), then: completion) }
            completion("\(unit.sentence) has a watchdog (WatchdogSec=), by which the service manager would kill it")
        }
    }
}
