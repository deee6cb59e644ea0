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
    /// Who is told when something begins to go wrong. Nobody, in most centers.
    let concerned = AtomicLazyReference<Concerned>()

    func noteLost(_ count: Int = 1) {
        if count > 0, lost.add(count, ordering: .relaxed).oldValue == 0 { concerned.load()?.tell(.lost) }
    }

    func noteRejected() {
        if rejected.add(1, ordering: .relaxed).oldValue == 0 { concerned.load()?.tell(.rejected) }
    }
}

final class Concerned: Sendable {
    let tell: @Sendable (NotifyCenter.Concern) -> Void

    init(_ tell: @escaping @Sendable (NotifyCenter.Concern) -> Void) { self.tell = tell }
}

extension NotifyCenter {
    /// What an administrator should know of.
    package enum Concern: Sendable {
        /// The first delivery or post was lost.
        case lost
        /// The first signal was rejected.
        case rejected
        /// A post was refused.
        case refused(NotifyName, NotifyBusError)
    }

    /// Has somebody told of concerns, on any thread and under the center's locks: it may only take note. Only the first
    /// call has an effect.
    package func onConcern(_ tell: @escaping @Sendable (Concern) -> Void) {
        _ = engine.counters.concerned.storeIfNil(Concerned(tell))
    }

    /// Tells of a post that was refused.
    package func noteRefused(_ name: NotifyName, _ error: NotifyBusError) {
        engine.counters.concerned.load()?.tell(.refused(name, error))
    }
}

extension Atomic where Value == Int {
    func increment(by count: Int = 1) {
        add(count, ordering: .relaxed)
    }
}
