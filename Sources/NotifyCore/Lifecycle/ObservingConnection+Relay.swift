// SPDX-License-Identifier: Apache-2.0

/// Whether the relay that a sandboxed program needs is known to be missing.
final class RelayStanding: Sendable {
    private let missing = Monitor(false)

    var isMissing: Bool {
        get { missing.withLock { $0 } }
        set { missing.withLock { $0 = newValue } }
    }
}

/// Posts that the relay has passed on.
struct RelayedPosts {
    private var posts: [(name: NotifyName, sender: String)] = []
    private var next = 0

    var isEmpty: Bool { next == posts.count }

    mutating func append(_ name: NotifyName, from sender: String) { posts.append((name, sender)) }

    mutating func takeNext() -> (name: NotifyName, sender: String)? {
        guard next < posts.count else { return nil }
        defer {
            next += 1
            if isEmpty { self = RelayedPosts() }
        }
        return posts[next]
    }
}

// A sandboxed program, which hears others through the relay and has no match rules on the bus.
extension ObservingConnection {
    /// The relay hears these; from now on nothing comes but by the relay.
    func hearByRelay(_ topics: [Topic], on engine: Engine) {
        if !hearsByRelay {
            withdrawAllRules(on: engine)
            hearsByRelay = true
        }
        activate(topics, on: engine)
    }

    func hearByBus(on engine: Engine) {
        guard hearsByRelay else { return }
        hearsByRelay = false
        putAllRules(on: engine)
    }

    /// The relay has answered an addition.
    func relayAnswered(_ answer: Result<Void, BusFault>, _ names: [String], _ prefixes: [String], on engine: Engine) {
        guard hearsByRelay else { return }
        let keys =
            names.compactMap { try? NotifyName($0) }.map { Topic.Key.name($0) }
            + prefixes.map { Topic.Key.prefix(NamePrefix($0)) }
        switch answer {
        case .success: activate(engine.registry.topics(of: keys), on: engine)
        // The next relay is told everything.
        case .failure(let fault) where fault.saysGone: break
        case .failure(let fault):
            let topics = engine.registry.topics(of: keys)
            engine.registry.settle { _ in
                for topic in topics { topic.state = .failed(NotifyBusError(.failed, fault.message)) }
            }
        }
    }

    /// Accepts posts, which are delivered before anything else is read.
    func receive(_ message: ObserverInterface.DeliverPosts, on engine: Engine) {
        guard lifecycle.gate != .closed else { return engine.counters.dropped.increment(by: message.names.count) }
        for (text, sender) in zip(message.names, message.senders) {
            if let name = try? NotifyName(text) { relayed.append(name, from: sender) }
        }
    }

    /// The next post that the relay has passed on.
    func nextRelayed(on engine: Engine) -> Arrival? {
        guard lifecycle.isOpen else { return nil }
        while let (name, sender) = relayed.takeNext() {
            let audience = engine.registry.state.withLock { $0.topics.audience(of: name) }
            if audience.isEmpty { continue }
            let arrival = Arrival(name: name, audience: audience)
            if sender.isEmpty { return arrival }
            if keepsSenders { postSender = sender }
            onPost?(name, sender)
            let rest = arrival.leavingOut(ownPostsFrom: sender, on: engine)
            if !rest.audience.isEmpty { return rest }
        }
        return nil
    }
}
