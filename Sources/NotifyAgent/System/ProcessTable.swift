// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator

/// The processes behind the coordinator's numbers: has them watched, stops them, and lets them continue.
final class ProcessTable {
    private struct Entry {
        /// The number by which the watcher identifies it.
        let number: UInt64
        let handle: ProcessHandle
        /// How the agent has stopped it, and on whose behalf.
        var stop: (how: Freezer.Stop, user: UInt32)?
    }

    private let watcher: Watcher
    private let logger: Logger
    private var entries: [ProcessID: Entry] = [:]
    private var ids: [UInt64: ProcessID] = [:]
    private var lastNumber: UInt64 = 0

    init(watcher: Watcher, logger: Logger) {
        self.watcher = watcher
        self.logger = logger
    }

    subscript(id: ProcessID) -> ProcessHandle? { entries[id]?.handle }
    subscript(number number: UInt64) -> ProcessID? { ids[number] }
    func number(of id: ProcessID) -> UInt64? { entries[id]?.number }

    /// Opens a registering process, unless it is already open.
    func note(_ client: Identity.Client) -> Newcomer.ProcessFacts {
        let handle = client.process
        let id = ProcessID(handle)
        if entries[id] == nil {
            lastNumber += 1
            entries[id] = Entry(number: lastNumber, handle: handle)
            ids[lastNumber] = id
            if handle.pidfd >= 0 { watcher.watch(handle, number: lastNumber) }
        }
        let isWatched = entries[id].map { $0.handle.pidfd >= 0 } ?? false
        return Newcomer.ProcessFacts(
            id: id,
            application: client.application,
            session: client.session,
            isWatched: isWatched
        )
    }

    func forget(_ id: ProcessID) {
        guard let entry = entries.removeValue(forKey: id) else { return }
        ids[entry.number] = nil
        watcher.forget(process: entry.number)
    }

    /// Looks at once whether these are stopped, if that matters.
    func look(at pids: Set<Int32>) {
        for (id, entry) in entries where pids.contains(id.pid) { watcher.look(at: entry.number) }
    }

    /// Those that a user currently may not stop.
    func strangers(to user: UInt32, among processes: [ProcessID]) -> Set<ProcessID> {
        Set(processes.filter { entries[$0]?.handle.mayBeStopped(by: user) != true })
    }

    // MARK: - Freezing

    func freeze(_ id: ProcessID, for user: UInt32) -> Event.FreezeOutcome {
        guard let entry = entries[id] else { return .failed("it has ended") }
        switch Freezer.freeze(entry.handle, for: user) {
        case .success(let stop):
            entries[id]?.stop = (stop, user)
            logger.info("froze", metadata: ["process": "\(id)"])
            return .frozen
        case .failure(let error): return error.code == EPERM ? .denied : .failed(error.text)
        }
    }

    /// - Returns: what prevented it.
    func thaw(_ id: ProcessID) -> String? {
        guard let entry = entries[id], let stop = entry.stop else { return nil }
        if let error = Freezer.thaw(entry.handle, stop.how, for: stop.user) {
            logger.error("can't thaw a process: \(error.text)", metadata: ["process": "\(id)"])
            return error.text
        }
        entries[id]?.stop = nil
        logger.info("thawed", metadata: ["process": "\(id)"])
        return nil
    }
}

extension ProcessID {
    init(_ handle: ProcessHandle) {
        self.init(pid: handle.key.pid, startTime: handle.key.start, user: handle.key.user)
    }
}
