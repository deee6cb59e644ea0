// SPDX-License-Identifier: Apache-2.0

// A sandboxed program, which hears others through the relay and has no match rules on the bus.
extension Receiver {
    /// The relay hears these; from now on nothing comes but by the relay. Topics that were added while it was asked are
    /// confirmed once it hears those, too.
    func hearByRelay(_ topics: [Topic]) {
        if !hearsByRelay {
            _ = removeAllRules()
            hearsByRelay = true
        }
        awaitsRelay = false
        heldTopics = []
        activate(topics)
    }

    /// There is no relay.
    func stopAwaitingRelay() {
        hearByBus()
        awaitsRelay = false
        confirmHeldTopics()
    }

    private func hearByBus() {
        guard hearsByRelay else { return }
        hearsByRelay = false
        putAllRules()
    }

    /// The relay has answered an addition.
    func relayAnswered(_ answer: Result<Void, BusFault>, _ names: [String], _ prefixes: [String]) {
        guard hearsByRelay else { return }
        let keys =
            names.compactMap { try? NotifyName($0) }.map { Topic.Key.name($0) }
            + prefixes.map { Topic.Key.prefix(NamePrefix($0)) }
        switch answer {
        case .success: activate(registry.topics(of: keys))
        // The next relay is told everything.
        case .failure(let fault) where fault.saysGone: break
        case .failure(let fault):
            let topics = registry.topics(of: keys)
            registry.settle { _ in
                for topic in topics {
                    topic.state = .failed(NotifyBusError(.failed, fault.message))
                    if topic.isOwed { unrestored -= 1 }
                    topic.isOwed = false
                }
            }
            noteRestored()
        }
    }

    /// Accepts posts, which are delivered before anything else is read.
    func receive(_ message: ObserverInterface.DeliverPosts) {
        guard lifecycle.gate != .closed else { return counters.noteLost(message.names.count) }
        for (text, sender) in zip(message.names, message.senders) {
            if let name = try? NotifyName(text) { relayed.append((name, sender)) }
        }
    }

    /// The next post that the relay has passed on.
    func nextRelayed() -> Arrival? {
        guard lifecycle.isOpen else { return nil }
        while let (name, sender) = relayed.popFirst() {
            let audience = registry.state.withLock { $0.topics.audience(of: name) }
            if audience.isEmpty { continue }
            let arrival = Arrival(name: name, audience: audience)
            if sender.isEmpty { return arrival }
            let rest = accept(arrival, from: sender)
            if !rest.audience.isEmpty { return rest }
        }
        return nil
    }
}
