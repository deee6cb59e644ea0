// SPDX-License-Identifier: Apache-2.0

import NotifyBus

/// What crosses: stamps names that go out, and decides which messages become posts. It outlives connections; the thread
/// of the broker alone uses it.
final class Traffic {
    let origin: Origin
    /// What the broker is asked for.
    let filters: [Topic]

    private let settings: Settings
    private let map: TopicMap
    private let exchange: Exchange
    private let center: NotifyCenter
    private let log: Log
    /// Rises across restarts, too, as long as the clock does.
    private var sequence = UInt64(clamping: Clock.wall / 1_000)
    private var window = StampWindow()
    private var limit: RateLimit
    /// What came faster than the rate allows.
    private var incoming = MergingQueue(mergesAll: true)
    /// When the first of them can be posted.
    private(set) var wakeTime: Int64?

    init(_ settings: Settings, _ origin: Origin, _ exchange: Exchange, _ center: NotifyCenter, _ log: Log) {
        self.settings = settings
        self.origin = origin
        self.exchange = exchange
        self.center = center
        self.log = log
        map = TopicMap(realm: settings.realm)
        filters = map.filters(for: settings.imports)
        limit = RateLimit(rate: settings.rate, now: Clock.now)
    }

    /// The topic of a name, and a new stamp.
    func stamp(_ name: NotifyName) -> (Topic, String) {
        sequence += 1
        return (map.topic(of: name), Stamp(origin: origin, sequence: sequence).description)
    }

    func noteSent(_ name: NotifyName) {
        exchange.count { $0.sent += 1 }
        log.detail("sent \(name)")
    }

    /// Takes a message from the broker.
    func receive(_ topic: UnsafeRawBufferPointer, _ payload: UnsafeRawBufferPointer, isRetained: Bool) {
        let stamp = Stamp(payload)
        guard let name = map.name(of: topic), settings.imports.allow(name), payload.isEmpty || stamp != nil else {
            exchange.count { $0.refused += 1 }
            return log.detail("refused a message to \(String(decoding: topic, as: UTF8.self))")
        }
        if let stamp, stamp.origin == origin || !window.insert(stamp) {
            exchange.count { $0.duplicates += 1 }
            return log.detail("left out \(name): it has come before")
        }
        if incoming.isEmpty, limit.take(now: Clock.now) { return post(name) }
        switch incoming.append(name) {
        case .queued: exchange.count { $0.waiting += 1 }
        case .merged: exchange.count { $0.merged += 1 }
        case .lost: exchange.count { $0.lost += 1 }
        }
        if wakeTime == nil { wakeTime = Clock.now + limit.wait }
    }

    /// Posts as many of the names that wait as the rate allows.
    func postWhatWaits() {
        guard let time = wakeTime, time <= Clock.now else { return }
        wakeTime = nil
        while !incoming.isEmpty {
            guard limit.take(now: Clock.now) else {
                wakeTime = Clock.now + limit.wait
                return
            }
            guard let name = incoming.takeFirst() else { return }
            exchange.count { $0.waiting -= 1 }
            post(name)
        }
    }

    private func post(_ name: NotifyName) {
        do {
            try center.post(name)
            exchange.count { $0.received += 1 }
            log.detail("received \(name)")
        } catch {
            exchange.count { $0.lost += 1 }
            log.notice("\(name) could not be posted: \(error.description)")
        }
    }

    /// Writes down what a bridge that starts again should know.
    func save() {}
}
