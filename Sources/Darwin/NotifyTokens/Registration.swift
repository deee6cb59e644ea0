// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// A token: how it is notified, and whether it is suspended or cancelled.
package final class Registration: Sendable {
    /// How a token is notified that its name was posted.
    package enum Delivery: Sendable {
        /// It polls with `notify_check`.
        case none
        /// By a signal to this process.
        case signal(Int32)
        /// Through a descriptor.
        case descriptor(TokenPipe)
        /// By a callback that runs soon, on a queue of its own.
        case queue(@Sendable (Registration) -> Void)
        /// By a function that runs soon, on the center's thread.
        case callback(CallbackTarget)
    }

    /// How many notifications may be queued; further ones are coalesced.
    private static let queueLimit = 4_096

    private static let cancelled: UInt32 = 1 << 31
    private static let posted: UInt32 = 1 << 30
    private static let countMask: UInt32 = posted - 1

    package let token: Int32
    let name: SharedObservation
    let delivery: Delivery
    /// How many times it is suspended, whether its name was posted in the meantime, and whether it is cancelled.
    private let state = Atomic<UInt32>(0)
    /// How many notifications are queued, or signals being sent.
    private let queued = Atomic<Int>(0)

    init(token: Int32, name: SharedObservation, delivery: Delivery) {
        self.token = token
        self.name = name
        self.delivery = delivery
    }

    /// Notifies the token that its name was posted; while suspended, remembers that instead.
    func deliver() {
        if case .signal(let number) = delivery { return send(number) }
        guard isToBeTold() else { return }
        switch delivery {
        case .none, .signal: break
        case .descriptor(let pipe): pipe.write(token) { isCancelled }
        case .queue(let schedule): enqueue(schedule)
        case .callback(let target): enqueue(target.schedule)
        }
    }

    /// Sends a signal, unless the token is cancelled. ``finishDelivery()`` waits for this, so no handler may run meanwhile.
    private func send(_ number: Int32) {
        withoutSignals {
            queued.add(1, ordering: .sequentiallyConsistent)
            if isToBeTold() { kill(getpid(), number) }
            queued.subtract(1, ordering: .sequentiallyConsistent)
        }
    }

    private func withoutSignals(_ body: () -> Void) {
        var all = sigset_t()
        var before = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_BLOCK, &all, &before)
        body()
        pthread_sigmask(SIG_SETMASK, &before, nil)
    }

    private func enqueue(_ schedule: (Registration) -> Void) {
        if queued.add(1, ordering: .relaxed).oldValue >= Registration.queueLimit {
            // A pending one covers this one, as it has yet to run.
            queued.subtract(1, ordering: .relaxed)
        } else {
            schedule(self)
        }
    }

    /// Runs what was queued, unless the token was cancelled or suspended in the meantime.
    package func run(_ body: () -> Void) {
        queued.subtract(1, ordering: .acquiringAndReleasing)
        if isToBeTold() { body() }
    }

    /// - Returns: whether the token is neither cancelled nor suspended; if suspended, it is marked as posted.
    private func isToBeTold() -> Bool {
        var word = state.load(ordering: .sequentiallyConsistent)
        while word & Registration.cancelled == 0 {
            if word & Registration.countMask == 0 { return true }
            if word & Registration.posted != 0 { return false }
            let (exchanged, original) = state.compareExchange(
                expected: word,
                desired: word | Registration.posted,
                ordering: .acquiringAndReleasing
            )
            if exchanged { return false }
            word = original
        }
        return false
    }

    func suspend() {
        change { word in word & Registration.countMask == Registration.countMask ? word : word + 1 }
    }

    /// - Returns: whether to notify it now of what was posted in the meantime.
    func resume() -> Bool {
        let before = change { word in
            switch word & Registration.countMask {
            case 0: word
            case 1: word & Registration.cancelled
            default: word - 1
            }
        }
        return before & Registration.countMask == 1 && before & Registration.posted != 0
    }

    func cancel() {
        state.bitwiseOr(Registration.cancelled, ordering: .sequentiallyConsistent)
    }

    /// Waits until no other thread delivers to a cancelled token, except to a queue.
    func finishDelivery() {
        switch delivery {
        case .none, .queue: break
        case .signal: while queued.load(ordering: .sequentiallyConsistent) > 0 { usleep(10) }
        case .descriptor(let pipe): pipe.forget(token)
        case .callback(let target): target.end()
        }
    }

    private var isCancelled: Bool { state.load(ordering: .acquiring) & Registration.cancelled != 0 }

    @discardableResult
    private func change(_ transform: (UInt32) -> UInt32) -> UInt32 {
        var word = state.load(ordering: .acquiring)
        while true {
            let (exchanged, original) = state.compareExchange(
                expected: word,
                desired: transform(word),
                ordering: .acquiringAndReleasing
            )
            if exchanged { return word }
            word = original
        }
    }
}
