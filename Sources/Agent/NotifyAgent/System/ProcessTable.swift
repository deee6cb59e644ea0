// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator

/// The processes of observers: has them watched, stops them, and lets them continue.
final class ProcessTable {
    private struct Entry {
        let handle: ProcessHandle
        /// How the agent has stopped it, and on whose behalf.
        var stop: (how: Freezer.Stop, user: UInt32)?
    }

    private let watcher: Watcher
    private let thawGuard: ThawGuard
    private let logger: Logger
    private var entries: [ProcessID: Entry] = [:]

    init(watcher: Watcher, _ thawGuard: ThawGuard, logger: Logger) {
        (self.watcher, self.thawGuard, self.logger) = (watcher, thawGuard, logger)
    }

    subscript(id: ProcessID) -> ProcessHandle? { entries[id]?.handle }

    /// Opens a registering process, unless it is already open.
    func note(_ client: Identity.Client) -> Newcomer.ProcessFacts {
        note(client.process, application: client.application, session: client.session)
    }

    private func note(_ handle: ProcessHandle, application: String, session: String?) -> Newcomer.ProcessFacts {
        let id = ProcessID(handle)
        if entries[id] == nil {
            entries[id] = Entry(handle: handle)
            if handle.pidfd >= 0 { watcher.watch(handle) }
        }
        let isWatched = entries[id].map { $0.handle.pidfd >= 0 } ?? false
        return Newcomer.ProcessFacts(
            id: id,
            application: application,
            session: session,
            isWatched: isWatched
        )
    }

    /// Opens a process that the agent before this one knew.
    ///
    /// - Returns: nil if it has exited.
    func find(_ id: ProcessID) -> Newcomer.ProcessFacts? {
        guard case .success(let (handle, look)) = ProcessHandle.open(id.pid, user: id.user), ProcessID(handle) == id
        else { return nil }
        return note(
            handle,
            application: AppIdentity.application(ofCgroups: look.cgroups),
            session: AppIdentity.session(ofCgroups: look.cgroups)
        )
    }

    func forget(_ id: ProcessID) {
        guard let entry = entries.removeValue(forKey: id) else { return }
        watcher.forget(id)
        guard let stop = entry.stop else { return }
        // Another process may come into its cgroup.
        _ = Freezer.thaw(entry.handle, stop.how, for: stop.user)
        thawGuard.remove(stop.how.thing(entry.handle))
    }

    /// Looks at once whether these are stopped, if that matters.
    func look(at pids: Set<Int32>) {
        for id in entries.keys where pids.contains(id.pid) { watcher.lookNow(at: id) }
    }

    /// Those that a user currently may not stop.
    func strangers(to user: UInt32, among processes: [ProcessID]) -> Set<ProcessID> {
        Set(processes.filter { entries[$0]?.handle.mayBeStopped(by: user) != true })
    }

    // MARK: - Freezing

    func freeze(_ id: ProcessID, for user: UInt32) -> Event.FreezeOutcome {
        guard let entry = entries[id] else { return .failed("it has ended") }
        switch Freezer.freeze(entry.handle, for: user, thawGuard) {
        case .success(let stop):
            entries[id]?.stop = (stop, user)
            logger.info("froze", metadata: ["process": "\(id)"])
            return .frozen
        case .failure(.noPermission): return .denied
        case .failure(let error): return .failed(error.text)
        }
    }

    /// Takes over a process that the agent before this one has stopped.
    ///
    /// - Returns: whether it is stopped.
    func adopt(_ id: ProcessID, frozenFor user: UInt32) -> Bool {
        guard let handle = entries[id]?.handle, let stop = Freezer.stop(of: handle) else { return false }
        guard thawGuard.add(stop.thing(handle), .person) else {
            _ = Freezer.thaw(handle, stop, for: user)
            return false
        }
        // Its guard may have lost patience before it saw this mark.
        guard Freezer.stop(of: handle) != nil else {
            thawGuard.remove(stop.thing(handle))
            return false
        }
        entries[id]?.stop = (stop, user)
        return true
    }

    /// The process that lets everything continue if the agent is killed, while something is stopped.
    var guardProcess: Int32? { thawGuard.process }

    /// Leaves processes stopped, for the next agent to adopt; they are the only ones that still are.
    func leave(_ ids: [ProcessID]) {
        for id in ids { entries[id]?.stop = nil }
        thawGuard.leave()
    }

    /// - Returns: what prevented it.
    func thaw(_ id: ProcessID) -> String? {
        guard let entry = entries[id], let stop = entry.stop else { return nil }
        if let error = Freezer.thaw(entry.handle, stop.how, for: stop.user) {
            logger.error("can't thaw a process: \(error.text)", metadata: ["process": "\(id)"])
            return error.text
        }
        entries[id]?.stop = nil
        thawGuard.remove(stop.how.thing(entry.handle))
        logger.info("thawed", metadata: ["process": "\(id)"])
        return nil
    }

    /// The process that was stopped this way on request; nil if there is none.
    func process(stoppedAs thing: StoppedThing) -> ProcessID? {
        entries.first { $0.value.stop?.how.thing($0.value.handle) == thing }?.key
    }
}

extension ProcessID {
    init(_ handle: ProcessHandle) {
        self.init(pid: handle.key.pid, startTime: handle.key.start, user: handle.key.user)
    }
}
