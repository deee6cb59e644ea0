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
        findUser(of: call.sender, link) { [self] user, link in
            guard let user else { return }
            do throws(BusFault) {
                try setState(call, target, text, state, freezes: freezes, user: user, on: link)
            } catch {
                link.refuse(call, error)
            }
        }
    }

    private func setState(
        _ call: BusCall,
        _ target: Target,
        _ text: String,
        _ state: ObserverState,
        freezes: Bool,
        user: UInt32,
        on link: borrowing BusLink
    ) throws(BusFault) {
        let all = directory.connections(of: target)
        guard !all.isEmpty else { throw .noSuchTarget(text) }
        var meant = all.filter { Authority.permits(user, over: $0.user) }
        // Of an application that others run too, one's own part is meant.
        guard !meant.isEmpty, meant.count == all.count || text.utf8.starts(with: "app:".utf8) else {
            throw .accessDenied(
                "'\(text)' belongs to user \(all[0].user): only that user and root can change its state, not user \(user)."
            )
        }
        if state != .foreground,
            let exempt = meant.first(where: { configuration.exemptApplications.contains($0.process.application) })
        {
            throw .accessDenied("The agent's configuration keeps \(exempt.process.application) in the foreground.")
        }
        let processes = Set(meant.map(\.process.pid)).compactMap { directory.processes[$0] }
        if freezes {
            try checkFreeze(processes)
            // A process stands still as a whole.
            meant = processes.flatMap { Array($0.connections.values) }
        }
        for user in Set(meant.map(\.process.user)) { directory.note(state, for: target, user: user) }
        change(meant, to: state, freezes: freezes ? processes : [], for: call, on: link)
    }

    private func checkFreeze(_ processes: [ManagedProcess]) throws(BusFault) {
        for process in processes where process.pid == getpid() || process.pid == 1 || process.pidfd < 0 {
            throw .invalidArguments("Process \(process.pid) can't be frozen.")
        }
    }

    // MARK: - Report

    /// A process says what it is in.
    func report(_ call: BusCall, _ state: ObserverState, on link: borrowing BusLink) throws(BusFault) {
        guard let own = directory[call.sender] else { throw .notRegistered }
        directory.note(state, for: .process(own.process.pid), user: own.user)
        change(Array(own.process.connections.values), to: state, freezes: [], for: call, on: link)
    }

    // MARK: - Both

    private func change(
        _ connections: [ManagedConnection],
        to state: ObserverState,
        freezes: [ManagedProcess],
        for call: BusCall,
        on link: borrowing BusLink
    ) {
        let request = ChangeRequest(call, state, for: connections, freezes: freezes)
        requests.append(request)
        if requests.count == 1 { watcher.alarm(at: request.deadline) }
        if state != .suspended {
            for pid in Set(connections.map(\.process.pid)) {
                if let process = directory.processes[pid] { thaw(process) }
            }
        }
        for connection in connections {
            connection.isRemembered = false
            if case .none = connection.parking {
                perform(connection.transition.want(state, by: [request]), for: connection, link)
            } else {
                changeParked(connection, to: state, request, link)
            }
        }
        for pid in Set(connections.map(\.process.pid)) {
            if let process = directory.processes[pid] { updateWatch(of: process) }
        }
    }

    /// The wish is in force at once: it is what the process will find when it runs again.
    private func changeParked(
        _ connection: ManagedConnection,
        to state: ObserverState,
        _ request: ChangeRequest,
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
        let new: ObserverState = state == .background ? .background : .suspended
        connection.transition = Transition(new, isHolding: new == .suspended)
        if old != new { announce(connection, from: old, to: new, link) }
        note(request, connection, nil, link)
    }

    func note(_ request: ChangeRequest, _ connection: ManagedConnection, _ failure: String?, _ link: borrowing BusLink)
    {
        guard request.note(connection, failure: failure) else { return }
        requests.removeAll { $0 === request }
        for process in request.freezes where request.failure == nil {
            if let error = freeze(process) {
                return request.fail(.failed("Process \(process.pid) can't be frozen: \(error.text)."), on: link)
            }
        }
        request.finish(on: link)
    }

    private func freeze(_ process: ManagedProcess) -> FreezeError? {
        guard process.stop == nil, directory.processes[process.pid] === process else { return nil }
        switch Freezer.freeze(process) {
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
        directory.processes.values.forEach(thaw)
    }

    private func thaw(_ process: ManagedProcess) {
        guard process.stop != nil else { return }
        if let error = Freezer.thaw(process) {
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
