// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore

/// How often something may be done: each time costs a pause, and unused time is saved, up to a limit.
struct Pace {
    /// The time between two looks of many, in nanoseconds: fifty a second.
    static let pause: Int64 = 20_000_000
    /// How many looks may follow each other at once after a rest.
    static let maximumInARow: Int64 = 5

    private let saving: Int64
    /// The earliest time for the next, in nanoseconds of the monotonic clock. The longer it has passed, the more may follow
    /// each other.
    private var next = Int64.min

    /// - Parameter saving: how much of the time that was not used counts, in nanoseconds.
    init(saving: Int64 = (Pace.maximumInARow - 1) * Pace.pause) { self.saving = saving }

    /// Until when to wait, in nanoseconds of the monotonic clock; nil if it may be done now.
    var due: Int64? { MonotonicTime.now.nanoseconds < next ? next : nil }

    /// Something was done for which a pause of this many nanoseconds is due.
    mutating func pay(_ pause: Int64) { next = max(next, MonotonicTime.now.nanoseconds - saving) + pause }

    /// The processor time that this thread has used, in nanoseconds. While others have the processor nothing is spent.
    static var processorTime: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}

/// A question that is asked again whenever something has happened: one is under way, and at most fifty are asked a
/// second, so that the other side has time for others.
final class PacedQuestion {
    private let loop: EventLoop
    private let ask: () -> Void
    private var pace = Pace()
    private var timer: Int?
    private var isUnderWay = false
    private var isWanted = false

    init(on loop: EventLoop, ask: @escaping () -> Void) { (self.loop, self.ask) = (loop, ask) }

    deinit { loop.cancel(timer) }

    /// Asks, as soon as the last question has been answered and the pause is over.
    func want() {
        isWanted = true
        askWhenDue()
    }

    func isAnswered() {
        isUnderWay = false
        askWhenDue()
    }

    /// There will be no answer to what was asked.
    func forget() {
        loop.cancel(timer)
        (timer, isUnderWay, isWanted) = (nil, false, false)
    }

    private func askWhenDue() {
        guard isWanted, !isUnderWay, timer == nil else { return }
        if let due = pace.due {
            timer = loop.at(MonotonicTime(nanoseconds: due)) { [weak self] in
                self?.timer = nil
                self?.askWhenDue()
            }
            return
        }
        pace.pay(Pace.pause)
        (isWanted, isUnderWay) = (false, true)
        ask()
    }
}
