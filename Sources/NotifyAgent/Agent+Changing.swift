// SPDX-License-Identifier: Apache-2.0

import Glibc
import Logging
import NotifyCore

extension Agent {
    // MARK: - SetState

    func setState(_ call: BusCall, on link: borrowing BusLink) throws(BusFault) {
        let text = call.arguments[0].string ?? ""
        guard let target = Target(text) else {
            throw .invalidArguments("A target is 'pid:N', ':1.N' or 'app:ID'.")
        }
        let state = try state(in: call.arguments[1])
        let freezes = call.arguments[2].boolean ?? false
        guard !freezes || state == .suspended else {
            throw .invalidArguments("Only what is suspended can be frozen.")
        }
        guard !directory.connections(of: target).isEmpty else { throw .noSuchTarget(text) }
        forOthers(call, on: link) { [self] user, link throws(BusFault) in
            try setState(call, target, text, state, freezes: freezes, user: user, on: link)
        }
    }

    /// Does what changes others than the caller, for a caller outside of any sandbox.
    func forOthers(
        _ call: BusCall,
        on link: borrowing BusLink,
        _ body: @escaping @Sendable (_ user: UInt32, borrowing BusLink) throws(BusFault) -> Void
    ) {
        identity.findCaller(call.sender, link) { answer, link in
            do throws(BusFault) {
                let caller = try answer.get()
                if let sandbox = caller.sandbox { throw .inSandbox(sandbox) }
                try body(caller.user, link)
            } catch {
                link.refuse(call, error)
            }
        }
    }

    private func setState(
        _ call: BusCall,
        _ target: Target,
        _ text: String,
        _ state: LifecycleState,
        freezes: Bool,
        user: UInt32,
        on link: borrowing BusLink
    ) throws(BusFault) {
        var meant = try connections(of: target, text, permittedTo: user)
        if state != .foreground,
            let exempt = meant.first(where: { configuration.exemptApplications.contains($0.process.application) })
        {
            throw .accessDenied("The agent's configuration keeps \(exempt.process.application) in the foreground.")
        }
        var processes: [ManagedProcess] = []
        if freezes {
            // A process stands still as a whole, with all its connections.
            processes = Set(meant.map(\.process.pid)).flatMap { directory.processes($0) }
            try checkFreeze(processes, by: user)
            meant = processes.flatMap { Array($0.connections.values) }
        }
        for user in Set(meant.map(\.process.user)) { directory.note(state, for: target, user: user) }
        for connection in meant { connection.person = state }
        let request = ChangeRequest(call, by: user, for: meant, freezes: processes)
        apply(meant, request, on: link)
    }

    /// The connections of a target that a user may change.
    func connections(
        of target: Target,
        _ text: String,
        permittedTo user: UInt32
    ) throws(BusFault) -> [ManagedConnection] {
        let all = directory.connections(of: target)
        guard !all.isEmpty else { throw .noSuchTarget(text) }
        let meant = all.filter { Identity.permits(user, over: $0.user) }
        // Of an application that others run too, one's own part is meant.
        guard !meant.isEmpty, meant.count == all.count || text.utf8.starts(with: "app:".utf8) else {
            throw .accessDenied(
                "'\(text)' belongs to user \(all[0].user): only that user and root can change its state, not user \(user)."
            )
        }
        return meant
    }

    private func checkFreeze(_ processes: [ManagedProcess], by user: UInt32) throws(BusFault) {
        for process in processes {
            guard process.pid != getpid(), process.pid != 1, process.isWatched else {
                throw .invalidArguments("Process \(process.pid) can't be frozen.")
            }
            guard process.handle.mayBeStopped(by: user) else {
                throw .accessDenied(
                    "Process \(process.pid) runs with the rights of another user, so only root can freeze it, not user \(user)."
                )
            }
        }
    }

    // MARK: - Report

    /// A process says what it is in.
    func report(_ call: BusCall, _ state: LifecycleState, on link: borrowing BusLink) throws(BusFault) {
        guard let own = directory[call.sender] else { throw .notRegistered }
        own.process.report = state
        let connections = Array(own.process.connections.values)
        apply(connections, ChangeRequest(call, by: own.user, for: connections), on: link)
    }

    // MARK: - Both

    /// Brings connections into what has been decided for them, and answers the call when they are there.
    func apply(_ connections: [ManagedConnection], _ request: ChangeRequest, on link: borrowing BusLink) {
        requests.append(request)
        if requests.count == 1 { watcher.alarm(at: request.deadline) }
        for connection in connections {
            connection.isRemembered = false
            connection.remembered = nil
        }
        change(connections, request, on: link)
    }

    /// Decides anew, and brings connections into what comes out.
    func change(_ connections: [ManagedConnection], _ request: ChangeRequest?, on link: borrowing BusLink) {
        for connection in connections {
            let decision = decide(connection)
            if decision != connection.decision {
                connection.decision = decision
                tellDecider(connection, link)
            }
        }
        let processes = Set(connections.map(\.process.number)).compactMap { directory.process(number: $0) }
        // What is to hear or to drop posts must run.
        for process in processes
        where connections.contains(where: { $0.process === process && $0.decision.state != .suspended }) {
            thaw(process, for: request?.user ?? process.user)
        }
        let waiters = request.map { [$0] } ?? []
        for connection in connections {
            let state = connection.decision.state
            if case .none = connection.parking {
                perform(connection.transition.want(state, by: waiters), for: connection, link)
            } else {
                changeParked(connection, to: state, request, link)
            }
        }
        for process in processes { updateWatch(of: process) }
    }

    /// The wish is in force at once: it is what the process will find when it runs again.
    private func changeParked(
        _ connection: ManagedConnection,
        to state: LifecycleState,
        _ request: ChangeRequest?,
        _ link: borrowing BusLink
    ) {
        connection.stateAfterParking = state
        if state == .background {
            release(connection.held, of: connection, link)
            connection.pending.removeAll()
        } else if connection.held.isEmpty {
            hold(connection.subjects, for: connection, link) { _, _ in }
        }
        let old = connection.state
        let new: LifecycleState = state == .background ? .background : .suspended
        connection.transition = Transition(new, isHolding: new == .suspended)
        if old != new { announce(connection, from: old, to: new, link) }
        if let request { note(request, connection, nil, link) }
    }

    func note(_ request: ChangeRequest, _ connection: ManagedConnection, _ failure: String?, _ link: borrowing BusLink)
    {
        guard request.note(connection, failure: failure) else { return }
        requests.removeAll { $0 === request }
        for process in request.freezes where request.failure == nil {
            if let error = freeze(process, for: request.user) {
                return request.fail(.failed("Process \(process.pid) can't be frozen: \(error.text)."), on: link)
            }
        }
        request.finish(on: link)
    }

    private func freeze(_ process: ManagedProcess, for user: UInt32) -> FreezeError? {
        guard process.stop == nil, directory.process(number: process.number) === process else { return nil }
        switch Freezer.freeze(process.handle, for: user) {
        case .success(let stop):
            process.stop = stop
            updateWatch(of: process)
            logger.info("froze", metadata: ["process": "\(process.pid)"])
            return nil
        case .failure(let error): return error
        }
    }

    /// Nobody else would know that these processes are to run again.
    func thawEverything() {
        for process in directory.processes.values { thaw(process, for: process.user) }
    }

    private func thaw(_ process: ManagedProcess, for user: UInt32) {
        guard let stop = process.stop else { return }
        if let error = Freezer.thaw(process.handle, stop, for: user) {
            logger.error("can't let a process go on: \(error.text)", metadata: ["process": "\(process.pid)"])
        } else {
            process.stop = nil
            logger.info("thawed", metadata: ["process": "\(process.pid)"])
        }
    }

    func expireRequests(_ link: borrowing BusLink) {
        let now = MonotonicClock.now
        while let first = requests.first {
            guard first.deadline <= now else { return watcher.alarm(at: first.deadline) }
            requests.removeFirst()
            first.expire(on: link)
        }
    }
}
