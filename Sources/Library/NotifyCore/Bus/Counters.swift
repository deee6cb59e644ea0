// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The counters behind `NotifyCenter.Statistics`. Relaxed: each is exact, but they are not read at one moment.
final class Counters: Sendable {
    let posted = Atomic(0)
    let coalescedPosts = Atomic(0)
    let delivered = Atomic(0)
    let coalescedDeliveries = Atomic(0)
    let lost = Atomic(0)
    let rejected = Atomic(0)
    let reconnects = Atomic(0)
    let forcedDisconnects = Atomic(0)
    /// What is called when something begins to go wrong. Most centers have none.
    let problemHandler = AtomicLazyReference<ProblemHandler>()

    func noteLost(_ count: Int = 1) {
        if count > 0, lost.add(count, ordering: .relaxed).oldValue == 0 { problemHandler.load()?.tell(.lost) }
    }

    func noteRejected() {
        if rejected.add(1, ordering: .relaxed).oldValue == 0 { problemHandler.load()?.tell(.rejected) }
    }
}

/// What an administrator should know of a center.
package enum CenterProblem: Sendable {
    /// The first delivery or post was lost.
    case lost
    /// The first signal was rejected.
    case rejected
    /// A post was refused.
    case refused(NotifyName, NotifyBusError)
}

final class ProblemHandler: Sendable {
    let tell: @Sendable (CenterProblem) -> Void

    init(_ tell: @escaping @Sendable (CenterProblem) -> Void) { self.tell = tell }
}

extension Atomic where Value == Int {
    func increment(by count: Int = 1) {
        add(count, ordering: .relaxed)
    }
}
