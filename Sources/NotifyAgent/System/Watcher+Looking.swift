// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import NotifyCore

/// Whether processes stand still.
extension Watcher {
    /// Begins or ends to look whether a process stands still. To be called again when there are other sockets.
    ///
    /// - Parameter isAnnounced: whether all its sockets are watched.
    func look(at pid: pid_t, _ mustLook: Bool, isAnnounced: Bool) {
        state.withLock { state in
            guard mustLook else { return endLooking(at: pid, &state) }
            if isAnnounced { state.unannounced.remove(pid) } else { state.unannounced.insert(pid) }
            if state.looks[pid] == nil {
                begin(ProcessLook(pid: pid), &state)
                suspect(pid, &state)
            } else if !isAnnounced {
                suspect(pid, &state)
            } else if !state.suspects.contains(pid) {
                waitForTraffic(of: pid, state)
            }
        }
    }

    func endLooking(at pid: pid_t, _ state: inout State) {
        guard let look = state.looks.removeValue(forKey: pid) else { return }
        forget(look)
        state.suspects.remove(pid)
        state.unannounced.remove(pid)
        heed(pid, state, events: 0)
    }

    private func suspect(_ pid: pid_t, _ state: inout State) {
        state.suspects.insert(pid)
        startTicking(&state)
    }

    private func waitForTraffic(of pid: pid_t, _ state: borrowing State) {
        heed(pid, state, events: Watcher.readable)
    }

    private func heed(_ pid: pid_t, _ state: borrowing State, events: UInt32) {
        for number in state.readers[pid] ?? [] {
            if let socket = state.sockets[number] { change(socket, number, events: events) }
        }
    }

    private func begin(_ look: ProcessLook, _ state: inout State) {
        if look.events >= 0 { _ = add(look.events, .cgroup, UInt64(look.pid), events: Watcher.urgent) }
        state.looks[look.pid] = look
    }

    private func forget(_ look: ProcessLook) {
        if look.events >= 0 { remove(look.events) }
    }

    /// The bus has something for a process. One notice is enough until the next look.
    func trafficBegins(_ number: UInt64) {
        state.withLock { state in
            guard let socket = state.sockets[number] else { return }
            change(socket, number, events: 0)
            if state.looks[socket.pid] != nil { suspect(socket.pid, &state) }
        }
    }

    func lookAround(_ report: (Event) -> Void) {
        let (suspects, drains) = state.withLock { ($0.suspects, $0.drains) }
        for pid in suspects {
            guard let look = state.withLock({ $0.looks[pid] }) else { continue }
            if let moved = look.moved() {
                state.withLock { state in
                    guard state.looks[pid] === look else { return }
                    forget(look)
                    begin(moved, &state)
                }
                report(.moved(pid))
            }
            self.look(at: pid, report)
        }
        for (number, stream) in drains where stream.isStuck() { finish(stream, number, report) }
        state.withLock { state in
            for pid in suspects where state.looks[pid]?.mustGoOn == false && !state.unannounced.contains(pid) {
                state.suspects.remove(pid)
                waitForTraffic(of: pid, state)
            }
            state.isTicking = !state.suspects.isEmpty || !state.drains.isEmpty
            if state.isTicking { linux_timerfd_fire(tick, Watcher.interval) }
        }
    }

    func look(at pid: pid_t, _ report: (Event) -> Void) {
        guard let look = state.withLock({ $0.looks[pid] }), let isStopped = look.change() else { return }
        report(isStopped ? .stopped(pid) : .continued(pid))
    }

    func startTicking(_ state: inout State) {
        guard !state.isTicking else { return }
        state.isTicking = true
        linux_timerfd_fire(tick, Watcher.interval)
    }
}
