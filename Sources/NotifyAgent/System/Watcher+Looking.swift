// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import NotifyCore

/// Detection of stopped processes.
extension Watcher {
    /// Starts or stops checking whether a process is stopped. Must be called again when its sockets change.
    ///
    /// - Parameter isAnnounced: whether all its sockets are watched.
    func look(at number: UInt64, _ mustLook: Bool, isAnnounced: Bool) {
        state.withLock { state in
            guard mustLook else { return endLooking(at: number, &state) }
            if isAnnounced { state.unannounced.remove(number) } else { state.unannounced.insert(number) }
            if state.looks[number] == nil {
                guard let process = state.processes[number] else { return }
                begin(ProcessLook(process), number, &state)
                suspect(number, &state)
            } else if !isAnnounced {
                suspect(number, &state)
            } else if !state.suspects.contains(number) {
                waitForTraffic(of: number, state)
            }
        }
    }

    func endLooking(at number: UInt64, _ state: inout State) {
        guard let look = state.looks.removeValue(forKey: number) else { return }
        forget(look)
        state.suspects.remove(number)
        state.unannounced.remove(number)
        heed(number, state, events: 0)
    }

    private func suspect(_ number: UInt64, _ state: inout State) {
        state.suspects.insert(number)
        startTicking(&state)
    }

    private func waitForTraffic(of number: UInt64, _ state: borrowing State) {
        heed(number, state, events: Watcher.readable)
    }

    private func heed(_ process: UInt64, _ state: borrowing State, events: UInt32) {
        for number in state.readers[process] ?? [] {
            if let socket = state.sockets[number] { change(socket, number, events: events) }
        }
    }

    private func begin(_ look: ProcessLook, _ number: UInt64, _ state: inout State) {
        if look.events >= 0 { _ = add(look.events, .cgroup, number, events: Watcher.urgent) }
        state.looks[number] = look
    }

    private func forget(_ look: ProcessLook) {
        if look.events >= 0 { remove(look.events) }
    }

    /// The bus has something for a process. One notice is enough until the next check.
    func trafficBegins(_ number: UInt64) {
        state.withLock { state in
            guard let socket = state.sockets[number] else { return }
            change(socket, number, events: 0)
            if state.looks[socket.process] != nil { suspect(socket.process, &state) }
        }
    }

    func lookAround(_ report: (Event) -> Void) {
        let (suspects, drains) = state.withLock { ($0.suspects, $0.drains) }
        for number in suspects {
            guard let look = state.withLock({ $0.looks[number] }) else { continue }
            if let moved = look.moved() {
                state.withLock { state in
                    guard state.looks[number] === look else { return }
                    forget(look)
                    begin(moved, number, &state)
                }
                report(.moved(number))
            }
            self.look(at: number, report)
        }
        for (connection, stream) in drains where stream.isStuck() { finish(stream, connection, report) }
        state.withLock { state in
            for number in suspects where state.looks[number]?.mustGoOn == false && !state.unannounced.contains(number) {
                state.suspects.remove(number)
                waitForTraffic(of: number, state)
            }
            state.isTicking = !state.suspects.isEmpty || !state.drains.isEmpty
            if state.isTicking { linux_timerfd_fire(tick, Watcher.interval) }
        }
    }

    func look(at number: UInt64, _ report: (Event) -> Void) {
        guard let look = state.withLock({ $0.looks[number] }), let isStopped = look.change() else { return }
        report(isStopped ? .stopped(number) : .continued(number))
    }

    func startTicking(_ state: inout State) {
        guard !state.isTicking else { return }
        state.isTicking = true
        linux_timerfd_fire(tick, Watcher.interval)
    }
}
