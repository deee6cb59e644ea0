// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore
import NotifyNames

/// systemd's manager on the bus, as far as entries need it: starts units, and reports their state. See
/// org.freedesktop.systemd1(5).
///
/// There are match rules for each unit, so that nothing that happens to others wakes the agent. Job signals are
/// received only while a job is pending: a bus can't filter them by unit, as dbus-broker matches no argument that
/// follows a number.
final class ServiceManager: ServiceClient {
    typealias Report = (Launcher.Event) -> Void

    static let name = "org.freedesktop.systemd1"
    static let path = "/org/freedesktop/systemd1"
    static let manager = "org.freedesktop.systemd1.Manager"
    static let unit = "org.freedesktop.systemd1.Unit"
    static let service = "org.freedesktop.systemd1.Service"
    static let properties = "org.freedesktop.DBus.Properties"
    static let absence = "no service manager on this bus: \(name) has no owner"
    static let silence = "the service manager has not answered yet"

    /// A unit that entries start, or have started.
    private struct Watch {
        var entries: Set<LaunchID> = []
        var isReferenced = false
        var rule = ""
        /// How its program has failed last.
        var failure: Failure?
    }

    /// How the program of a service has failed.
    struct Failure {
        let text: String
        /// What it exited with; nil if it did not.
        var status: UInt64?
        /// Whether it has run at all.
        var hasRun = true
    }

    let service = FollowedService(name: ServiceManager.name, title: "the service manager", signals: [])
    let link: BusLink
    let report: Report
    private let bus: any ServiceBus
    /// nil while there is none, or it does not answer.
    private var manager: Service?
    /// Whether it is not known yet if there is one.
    private var isFirst = true
    private var watches: [String: Watch] = [:]
    /// The entries that are there: an answer about any other comes too late.
    private(set) var attached: Set<LaunchID> = []
    /// By path. Two entries that start the same unit share a job.
    var jobs: [String: [Job]] = [:]
    /// The units of entries: for a command the one that is currently running.
    var units: [LaunchID: String] = [:]
    /// The entries whose command is being ended, and has yet to be started again.
    var stopping: Set<LaunchID> = []
    /// The starts that it has yet to accept.
    var requested: [LaunchID: UInt64] = [:]
    /// How many jobs have been requested and are not over.
    var jobsUnderWay = 0
    /// How often the command of an entry was started, by this agent and earlier ones.
    var counts: [String: UInt64] = [:]

    init(_ link: BusLink, on bus: any ServiceBus, report: @escaping Report) {
        (self.link, self.bus, self.report) = (link, bus, report)
        bus.add(self)
    }

    /// The unit in which an entry's program runs.
    func unit(of id: LaunchID) -> String? { units[id] }

    // MARK: - Availability

    func end() {
        // While it can still be called.
        if manager != nil { call("Unsubscribe") { _ in } }
        forgetAll()
        bus.remove(self)
    }

    func serviceHasCome(_ service: Service) {
        forgetAll()
        manager = service
        // Until the first one answers, entries keep what is due.
        if !isFirst { report(.manager(obstacle: ServiceManager.silence)) }
        isFirst = false
        call("Subscribe") { [self] _ in report(.manager(obstacle: nil)) }
    }

    func serviceIsAway(_ reason: String) {
        forgetAll()
        isFirst = false
        report(.manager(obstacle: ServiceManager.absence))
    }

    func serviceIsSilent(_ reason: String) {
        let requested = requested
        forgetAll()
        for (id, number) in requested.sorted(by: { $0.key < $1.key }) {
            report(.ended(id, number: number, .failed(reason)))
        }
        report(.manager(obstacle: reason))
    }

    private func forgetAll() {
        manager = nil
        (jobs, units, requested, stopping) = ([:], [:], [:], [])
        if jobsUnderWay > 0 { link.callBus("RemoveMatch", [.string(ServiceManager.jobRule)]) }
        jobsUnderWay = 0
        for (unit, watch) in watches { drop(watch, unit) }
        watches = [:]
    }

    func call(
        _ member: String,
        _ arguments: [BusValue] = [],
        then completion: @escaping (BusAnswer) -> Void
    ) {
        guard let manager else { return completion(.failure(.noManager)) }
        manager.call(member, of: ServiceManager.manager, at: ServiceManager.path, arguments, then: completion)
    }

    /// Asks for a property of a unit.
    func property(
        _ name: String,
        of interface: String,
        _ unit: String,
        then completion: @escaping (BusValue?) -> Void
    ) {
        guard let manager else { return completion(nil) }
        manager.call(
            "Get",
            of: ServiceManager.properties,
            at: UnitName.path(of: unit),
            [.string(interface), .string(name)]
        ) { answer in
            guard case .success(let values) = answer, case .variant(let value)? = values.first else {
                return completion(nil)
            }
            completion(value)
        }
    }

    // MARK: - Units

    /// Finds out whether the unit of an entry is running, and reports whenever that changes.
    func attach(_ id: LaunchID, _ name: String) {
        attached.insert(id)
        call("LoadUnit", [.string(name)]) { [self] answer in
            guard attached.contains(id) else { return }
            // Its own name, if the entry uses an alias.
            var found = name
            if case .success(let values) = answer, case .text(_, let path)? = values.first {
                found = UnitName.unit(ofPath: path) ?? name
            }
            units[id] = found
            watch(found, for: id)
            reference(found)
            ask(found)
        }
    }

    /// Finds out which unit of a command is running.
    func attach(_ id: LaunchID, command title: String) {
        attached.insert(id)
        let stem = ServiceManager.stem(of: title)
        let pattern = stem.flatMap { $0 == "\\" ? ["\\", "\\"] : [$0] }
        call(
            "ListUnitsByPatterns",
            [.strings([]), .strings([String(pattern) + "*.service"])]
        ) { [self] answer in
            guard attached.contains(id) else { return }
            var running: String?
            if case .success(let values) = answer {
                for case .structure(let fields) in values.first?.elements ?? [] where fields.count > 3 {
                    guard let unit = fields[0].string, let state = fields[3].string,
                        // Nothing is started so often that it takes more; a greater number is not one of ours.
                        let number = UInt32(unit.dropFirst(stem.count).dropLast(".service".count))
                    else { continue }
                    counts[title] = max(counts[title] ?? 0, UInt64(number))
                    if ServiceManager.isActive(state) { running = unit }
                }
            }
            guard let running else { return report(.activity(id, false)) }
            units[id] = running
            watch(running, for: id)
            ask(running)
        }
    }

    func detach(_ id: LaunchID) {
        attached.remove(id)
        forgetUnit(of: id)
    }

    func forgetUnit(of id: LaunchID) {
        if let unit = units.removeValue(forKey: id) { forget(unit, for: id) }
    }

    /// What the names of all units of commands begin with.
    static let stem = "notifybus-launch-"

    static func stem(of title: String) -> String { "\(stem)\(UnitName.escaped(title))-" }

    /// Whether the name of a unit has room for the title of an entry, a number of 20 digits and a suffix.
    static func isShortEnough(_ title: String) -> Bool {
        stem(of: title).utf8.count + 20 + ".service".utf8.count <= 255
    }

    private static func isActive(_ state: String) -> Bool { !["inactive", "failed", "maintenance"].contains(state) }

    func watch(_ unit: String, for id: LaunchID) {
        var watch = watches.removeValue(forKey: unit) ?? Watch()
        if watch.rule.isEmpty {
            let sender = "type='signal',sender='\(ServiceManager.name)'"
            let rule =
                "\(sender),path='\(UnitName.path(of: unit))',interface='\(ServiceManager.properties)',"
                + "member='PropertiesChanged'"
            watch.rule = rule
            link.callBus("AddMatch", [.string(rule)])
        }
        watch.entries.insert(id)
        watches[unit] = watch
    }

    private func forget(_ unit: String, for id: LaunchID) {
        watches[unit]?.entries.remove(id)
        guard let watch = watches[unit], watch.entries.isEmpty else { return }
        drop(watch, unit)
        watches[unit] = nil
    }

    private func drop(_ watch: Watch, _ unit: String) {
        link.callBus("RemoveMatch", [.string(watch.rule)])
        if watch.isReferenced { call("UnrefUnit", [.string(unit)]) { _ in } }
    }

    /// So that the manager keeps the unit, and counts its starts, in between.
    func reference(_ unit: String) {
        guard watches[unit]?.isReferenced == false else { return }
        watches[unit]?.isReferenced = true
        call("RefUnit", [.string(unit)]) { [self] answer in
            // It may come later.
            if case .failure = answer { watches[unit]?.isReferenced = false }
        }
    }

    private func ask(_ unit: String) {
        property("ActiveState", of: ServiceManager.unit, unit) { [self] value in
            note(unit, value?.string ?? "inactive")
        }
    }

    private func note(_ unit: String, _ state: String) {
        let isActive = ServiceManager.isActive(state)
        for id in watches[unit]?.entries.sorted() ?? [] {
            let failure = state == "failed" ? watches[unit]?.failure?.text ?? "the unit has failed" : nil
            report(.activity(id, isActive, failure: failure))
            // That of a command is gone for good.
            if !isActive, unit.hasPrefix(ServiceManager.stem), watches[unit]?.isReferenced == false,
                !jobs.values.joined().contains(where: { if case .start(id, _) = $0 { true } else { false } })
            {
                forgetUnit(of: id)
            }
        }
    }

    /// How the program of a service has failed. See org.freedesktop.systemd1(5), "Service Unit Objects".
    private static func failure(in values: [String: BusValue]) -> Failure? {
        guard let result = values["Result"]?.string, result != "success" else { return nil }
        var status: UInt64?
        if case .number(_, let number)? = values["ExecMainStatus"] { status = number }
        let text = status.map { String($0) } ?? "?"
        switch result {
        case "exit-code": return Failure(text: "exited with status \(text)", status: status)
        case "signal", "core-dump": return Failure(text: "was ended by signal \(text)")
        default:
            let hasRun = ["timeout", "watchdog", "oom-kill"].contains(result)
            return Failure(text: "failed with '\(result.sentence)'", hasRun: hasRun)
        }
    }

    /// How the program of an entry has failed, as far as the service manager has said so by itself.
    func failure(of id: LaunchID) -> Failure? { units[id].flatMap { watches[$0]?.failure } }

    // MARK: - Signals

    func handle(_ signal: BusSignal) {
        let arguments = signal.arguments
        switch (signal.interface, signal.member) {
        case (ServiceManager.properties, "PropertiesChanged"):
            guard arguments.count == 3, let values = arguments[1].dictionary,
                let unit = UnitName.unit(ofPath: signal.path), watches[unit] != nil
            else { return }
            // The service manager reports what is particular to a service first, so that it is known with the state.
            if arguments[0].string == ServiceManager.service {
                watches[unit]?.failure = ServiceManager.failure(in: values)
            } else if arguments[0].string == ServiceManager.unit, let state = values["ActiveState"]?.string {
                note(unit, state)
            }
        case (ServiceManager.manager, "JobRemoved"):
            guard arguments.count == 4, case .text(_, let path) = arguments[1], let result = arguments[3].string,
                let ended = jobs.removeValue(forKey: path)
            else { return }
            for job in ended {
                jobEnds()
                end(job, result)
            }
        default: break
        }
    }
}

extension String {
    /// A text by another program, as part of a report: on one line, and not long.
    var sentence: String {
        var result = ""
        for scalar in unicodeScalars.prefix(500) where !String(scalar).hasControlCharacters {
            result.unicodeScalars.append(scalar)
        }
        return result
    }
}

extension BusFault {
    fileprivate static let noManager = BusFault(
        name: "org.freedesktop.DBus.Error.ServiceUnknown",
        message: ServiceManager.absence
    )
}
