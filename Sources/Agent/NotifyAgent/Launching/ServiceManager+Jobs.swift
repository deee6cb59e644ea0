// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore

// Starting, and what becomes of it.
extension ServiceManager {
    /// A job that has been asked for.
    enum Job {
        case start(LaunchID, number: UInt64)
        /// A command that runs is ended, to be started again.
        case stop(then: () -> Void)
    }

    static let jobRule =
        "type='signal',sender='\(name)',path='\(path)',interface='\(manager)',member='JobRemoved'"

    /// Whether there are starts that it has yet to accept.
    var hasUnacceptedStarts: Bool { requested.keys.contains { !stopping.contains($0) } }

    private func jobBegins() {
        jobsUnderWay += 1
        if jobsUnderWay == 1 { link.callBus("AddMatch", [.string(ServiceManager.jobRule)]) }
    }

    func jobEnds() {
        guard jobsUnderWay > 0 else { return }
        jobsUnderWay -= 1
        if jobsUnderWay == 0 { link.callBus("RemoveMatch", [.string(ServiceManager.jobRule)]) }
    }

    func start(_ id: LaunchID, number: UInt64, _ name: String, restarts: Bool) {
        if let unit = units[id] { reference(unit) }
        let member = restarts ? "RestartUnit" : "StartUnit"
        jobBegins()
        requested[id] = number
        call(member, [.string(name), .string("replace")]) { [self] answer in
            take(answer, id, number)
        }
    }

    private func take(_ answer: BusAnswer, _ id: LaunchID, _ number: UInt64) {
        requested[id] = nil
        switch answer {
        case .failure(let fault) where fault.saysGone:
            // That it is away comes next, and it is asked once more when it is back. If it has gone just after it began the start,
            // that is once too often, which is better than never.
            jobEnds()
        case .failure(let fault):
            jobEnds()
            report(.ended(id, number: number, .failed(fault.message.sentence)))
        case .success(let values):
            guard case .text(_, let job)? = values.first else { return jobEnds() }
            jobs[job, default: []].append(.start(id, number: number))
            report(.accepted(id, number: number))
        }
    }

    /// Starts a command in a unit of its own.
    func start(
        _ id: LaunchID,
        number: UInt64,
        _ entry: LaunchEntry,
        command: [String],
        first: NotifyName,
        restarts: Bool
    ) {
        stopping.remove(id)
        // It may have gone while the last run was being stopped.
        guard attached.contains(id) else {
            requested[id] = nil
            return
        }
        if restarts, let unit = units[id] {
            jobBegins()
            stopping.insert(id)
            requested[id] = number
            return call("StopUnit", [.string(unit), .string("replace")]) { [self] answer in
                let next: () -> Void = { [self] in
                    start(id, number: number, entry, command: command, first: first, restarts: false)
                }
                guard case .success(let values) = answer, case .text(_, let job)? = values.first else {
                    jobEnds()
                    return next()
                }
                jobs[job, default: []].append(.stop(then: next))
            }
        }
        forgetUnit(of: id)
        // The number may come from the name of a unit that another program has made.
        let count = (counts[entry.title] ?? 0) &+ 1
        counts[entry.title] = count
        let unit = ServiceManager.stem(of: entry.title) + "\(count).service"
        units[id] = unit
        watch(unit, for: id)
        let properties = ServiceManager.properties(of: entry, command, first: first)
        jobBegins()
        requested[id] = number
        call(
            "StartTransientUnit",
            [.string(unit), .string("fail"), properties, .array(element: "(sa(sv))", [])]
        ) { [self] answer in
            if case .failure(let fault) = answer, fault.name == "org.freedesktop.systemd1.UnitExists" {
                // An agent before this one has started it.
                jobEnds()
                return start(id, number: number, entry, command: command, first: first, restarts: false)
            }
            take(answer, id, number)
        }
    }

    private static func properties(of entry: LaunchEntry, _ command: [String], first: NotifyName) -> BusValue {
        let execution = BusValue.array(
            element: "(sasb)",
            [.structure([.string(command[0]), .strings(command), .boolean(false)])]
        )
        let values: [(String, BusValue)] = [
            // systemd writes this to a file as it stands: nothing that a stranger has chosen. The unit's name says which
            // entry it belongs to. The environment it escapes.
            ("Description", .string("Started by NotifyBus for a posted name")),
            ("Type", .string("exec")),
            ("Slice", .string("app.slice")),
            ("CollectMode", .string("inactive-or-failed")),
            ("SyslogIdentifier", .string(entry.title)),
            // As long as a run of notify-wait gets before it is killed.
            ("TimeoutStopUSec", .uint64(5_000_000)),
            ("Environment", .strings(["NOTIFY_NAME=\(first)"] + entry.environment)),
            ("ExecStart", execution),
        ]
        return .array(element: "(sv)", values.map { .structure([.string($0.0), .variant($0.1)]) })
    }

    // MARK: - The end of a job

    func end(_ job: Job, _ result: String) {
        switch job {
        case .stop(let next): next()
        case .start(let id, let number):
            let text = "the start ended with '\(result.sentence)'"
            switch result {
            case "done":
                findBegin(of: id) { [self] time in
                    report(.ended(id, number: number, time.map { .begun(at: $0) } ?? .done))
                }
            case "skipped": report(.ended(id, number: number, .done))
            case "canceled": report(.ended(id, number: number, .canceled))
            case "failed":
                findStatus(of: id) { [self] failure in
                    let outcome: Launcher.Outcome =
                        switch failure?.status {
                        case ServiceManager.noControlGroup: .neverRan(text)
                        // Others of systemd's own: it has not executed the program.
                        case let status? where status >= 200: .failed("\(text): status \(status)")
                        default: failure.map { $0.hasRun ? .programFailed($0.text) : .failed($0.text) } ?? .failed(text)
                        }
                    report(.ended(id, number: number, outcome))
                }
            default: report(.ended(id, number: number, .failed(text)))
            }
        }
    }

    /// When the unit of an entry was last started: the service manager has nothing to do for a unit that another client
    /// has started, and if another client is starting it, the two share the job. It tests the conditions of a unit,
    /// even if there are none, just before it starts it. Nil if this is not known, or no other client can have started
    /// it.
    private func findBegin(
        of id: LaunchID,
        then completion: @escaping (Int64?) -> Void
    ) {
        guard let unit = units[id], !unit.hasPrefix(ServiceManager.stem) else { return completion(nil) }
        property("ConditionTimestampMonotonic", of: ServiceManager.unit, unit) { value in
            guard case .number(_, let microseconds)? = value, microseconds > 0, let time = Int64(exactly: microseconds)
            else { return completion(nil) }
            let nanoseconds = time.multipliedReportingOverflow(by: 1_000)
            completion(nanoseconds.overflow ? nil : nanoseconds.partialValue)
        }
    }

    /// The status of what systemd can't put into its control group, and so does not execute. That happens to a unit that
    /// is started while systemd removes the control group of its last run. See EXIT_CGROUP in systemd.exec(5).
    private static let noControlGroup: UInt64 = 219

    /// How the program of an entry has failed; nil if it is not known to have run. A unit that is gone by then has no
    /// properties, but the service manager has said before how it ended.
    private func findStatus(
        of id: LaunchID,
        then completion: @escaping (Failure?) -> Void
    ) {
        if let failure = failure(of: id) { return completion(failure) }
        guard let unit = units[id], unit.hasSuffix(".service") else { return completion(nil) }
        property("ExecMainStatus", of: ServiceManager.service, unit) { value in
            guard case .number(_, let status)? = value, status > 0 else { return completion(nil) }
            completion(Failure(text: "exited with status \(status)", status: status))
        }
    }
}
