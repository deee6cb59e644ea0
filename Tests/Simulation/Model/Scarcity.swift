// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// What is scarce in a history. In most there is plenty of everything, and nothing of this happens.
package struct Scarcity: Sendable {
    /// How many messages a poster's socket holds.
    package var socket: Int?
    /// Whether callbacks may take long.
    package var slowCallbacks = false
    /// How many rules the bus allows an observer.
    package var rules: Int?
    /// Whether the bus ends and another is started.
    package var restartsBus = false
    /// How many names a queue holds individually, and in all. There are four names.
    package var individual = 2
    package var all = 3

    static let none = Scarcity()

    /// It has a generator of its own, so that the other histories stay what they are.
    static func random(_ random: inout SplitMix) -> Scarcity {
        var scarcity = Scarcity()
        if random.chance(8) { scarcity.socket = 1 + random.below(3) }
        scarcity.slowCallbacks = random.chance(8)
        if random.chance(8) { scarcity.rules = 6 + random.below(2) }
        scarcity.all = 1 + random.below(3)
        scarcity.individual = 1 + random.below(scarcity.all)
        return scarcity
    }

    func queue<Name>() -> CoalescingQueue<Name> { CoalescingQueue(individualLimit: individual, limit: all) }
}

/// What is lost or coalesced because a queue is full. notifybus(7) says so; it is counted.
package enum Excess: Int, CaseIterable, Sendable {
    case awayPost, coalescedPost, refusedPost, unsentPost, coalescedDelivery, droppedDelivery

    package var title: String {
        switch self {
        case .awayPost: "posts refused, because the bus was away"
        case .coalescedPost: "posts coalesced in the poster's queue"
        case .refusedPost: "posts refused, because the poster's queue was full"
        case .unsentPost: "posts lost, because the bus did not read for a second at the poster's exit"
        case .coalescedDelivery: "deliveries coalesced in the queue of a slow callback"
        case .droppedDelivery: "deliveries lost, because the queue of a slow callback was full"
        }
    }
}

/// What has a place in a queue.
struct Waiting: Coalescing, Hashable {
    let name: Int
}

/// What a queue is promised to do, in the words of notifybus(7): it says whether an outcome was right.
struct QueuePromise: Hashable {
    private let individual: Int
    private let all: Int
    /// The names that are to be taken, in this order.
    private var due: [Int] = []

    init(_ scarcity: Scarcity) { (individual, all) = (scarcity.individual, scarcity.all) }

    var count: Int { due.count }

    /// - Returns: what is wrong.
    mutating func offered<Name>(_ name: Int, _ outcome: CoalescingQueue<Name>.Outcome) -> String? {
        let waits = due.contains(name)
        switch outcome {
        case .queued:
            defer { due.append(name) }
            return count < individual || !waits && count < all ? nil : "grows beyond its limit"
        case .coalesced: return count >= individual && waits ? nil : "coalesces too early"
        case .full: return count >= all && !waits ? nil : "is full too early"
        }
    }

    mutating func taken(_ one: Waiting) -> String? {
        guard !due.isEmpty else { return "has more than was put into it" }
        return due.removeFirst() == one.name ? nil : "is out of order"
    }

    /// These were taken, and must be taken again.
    mutating func untaken(_ some: [Waiting]) { due.insert(contentsOf: some.map(\.name), at: 0) }

    mutating func removeAll() { due.removeAll() }
}

extension World {
    /// What happens because something is scarce; nil if that is nothing now.
    func strain(_ random: inout SplitMix) -> Step? {
        if setting.scarcity.socket != nil, random.chance(4) {
            let poster = random.below(posters.count)
            switch random.below(8) {
            case 0: return .cutPoster(poster)
            case 1: return .endPoster(poster)
            default: return .post(poster: poster, name: setting.names[random.below(setting.names.count)])
            }
        }
        if setting.scarcity.slowCallbacks, random.chance(6) {
            return random.chance(3)
                ? .slow(observer: random.below(observers.count))
                : .post(poster: random.below(posters.count), name: setting.names[random.below(setting.names.count)])
        }
        if setting.scarcity.rules != nil, random.chance(5) {
            return random.chance(2)
                ? .cancel(random.below(max(1, registrations.count)))
                : .observe(random.below(observers.count), setting.subjects[random.below(setting.subjects.count)])
        }
        if bus.isAway, random.chance(6) { return .startBus }
        if setting.scarcity.restartsBus, random.chance(30) { return .endBus(readable: random.below(4)) }
        return nil
    }
}
