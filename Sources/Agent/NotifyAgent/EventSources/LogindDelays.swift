// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore

/// The locks by which logind waits with sleep or shutdown until programs have been told. See systemd-inhibit(1).
final class LogindDelays {
    /// What logind lets programs delay.
    enum Delay: String {
        case sleep, shutdown
    }

    private var wanted: Set<Delay> = []
    private var locks: [Delay: Int32] = [:]
    private var asked: Set<Delay> = []
    private var logind: Service?
    /// Whether there is something to be delayed: sleep or shutdown that has already begun can't be.
    private var mayDelay = false
    /// Asks again for what logind has refused.
    private var retry: Retry?

    deinit { letGo() }

    /// - Parameter loop: nil if nothing is to be asked for any more.
    func live(on loop: EventLoop?) { retry = loop.map { Retry(on: $0) } }

    /// logind can be asked, or no longer.
    func connect(_ logind: Service?) {
        letGo()
        retry?.reset()
        asked = []
        (self.logind, mayDelay) = (logind, false)
    }

    /// These are to be delayed from now on, and no others.
    func want(_ wanted: Set<Delay>) {
        self.wanted = wanted
        for (delay, lock) in locks where !wanted.contains(delay) {
            close(lock)
            locks[delay] = nil
        }
        take()
    }

    /// Takes the locks that are missing, unless sleep or shutdown has begun.
    func allow(_ mayDelay: Bool) {
        self.mayDelay = mayDelay
        take()
    }

    /// Lets what has begun go on.
    func letGo() {
        for lock in locks.values { close(lock) }
        locks = [:]
    }

    private func take() {
        guard mayDelay, let logind else { return }
        for delay in wanted where locks[delay] == nil && asked.insert(delay).inserted {
            let texts = [delay.rawValue, "notify-agent", "Programs are told of it first.", "delay"]
            logind.call(
                "Inhibit",
                of: LogindSource.manager,
                at: LogindSource.path,
                texts.map { .string($0) }
            ) { [self] answer in
                asked.remove(delay)
                let values = (try? answer.get()) ?? []
                guard let lock = values.first?.descriptor, lock >= 0 else {
                    values.closeDescriptors()
                    retry?.schedule { [weak self] in self?.take() }
                    return
                }
                retry?.reset()
                // One that came too late, or that is not wanted any more, is given back.
                guard locks[delay] == nil, wanted.contains(delay), mayDelay else {
                    values.closeDescriptors()
                    return take()
                }
                locks[delay] = lock
            }
        }
    }
}
