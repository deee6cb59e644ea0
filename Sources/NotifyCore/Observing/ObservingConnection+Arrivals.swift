// SPDX-License-Identifier: Apache-2.0

import Glibc

extension ObservingConnection {
    /// Finds out whether a signal is a post that somebody wants, and whether it is to be believed.
    func arrival(from message: BusMessage, on engine: Engine) -> Arrival? {
        guard let text = message.postedName else { return message.looksLikePost ? ignore(on: engine) : nil }
        let hash = fnv1a64(text)
        let found: (name: NotifyName?, arrival: Arrival?, isForged: Bool) = engine.registry.state.withLock { state in
            let topic = state.topics.topic(named: text, hash: hash)
            if let topic, state.topics.prefixes.isEmpty, case .name(let name) = topic.key {
                // The common case: one name, known, nothing to be made.
                guard topic.shape.fits(message) else { return (nil, nil, true) }
                return (name, Arrival(name: name, observers: topic.observers), false)
            }
            // With only names observed, what nobody wants comes from a registration that has just ended, from a forger,
            // or from the wide rules, and then there is too much of it to look closer.
            if topic == nil, state.topics.prefixes.isEmpty, reach.hearsEverything { return (nil, nil, false) }
            guard let known = names.find(text), known.shape.fits(message) else { return (nil, nil, true) }
            let observers = state.topics.addingPrefixObservers(of: known.name, to: topic?.observers ?? [])
            return (known.name, Arrival(name: known.name, observers: observers), false)
        }
        if found.isForged { return ignore(on: engine) }
        guard let name = found.name, let arrival = found.arrival else { return nil }
        if arrival.observers.isEmpty { return nil }
        guard lifecycle.isOpen else {
            if !lifecycle.isEntering { engine.counters.dropped.increment() }
            return nil
        }
        if case .owned = name.storage.scope { return verify(name, arrival, message, on: engine) }
        if senders.isHolding { return verify(name, arrival, message, on: engine) }
        guard let sender = message.sender else { return arrival }
        onPost?(name, sender)
        return arrival.leavingOut(ownPostsFrom: sender, on: engine)
    }

    private func ignore(on engine: Engine) -> Arrival? {
        engine.counters.ignored.increment()
        return nil
    }

    /// Lets a post pass whose sender may post it; asks the bus where the sender is not known.
    private func verify(_ name: NotifyName, _ arrival: Arrival, _ message: BusMessage, on engine: Engine) -> Arrival? {
        guard let sender = message.sender.map({ String(cString: $0) }) else { return ignore(on: engine) }
        switch senders.judge(name, from: sender, users[sender]) {
        case .believed:
            onPost?(name, sender)
            return arrival.leavingOut(ownPostsFrom: sender, on: engine)
        case .refused: return ignore(on: engine)
        case .held(let isFirst, let isDropped):
            if isDropped { engine.counters.dropped.increment() }
            if isFirst {
                BusLink(observing: self, engine: engine).findUser(of: sender) { user, link in
                    link.observing.senders.learn(user: try? user.get(), of: sender)
                }
            }
            return nil
        }
    }

    /// The next name that was posted while the program was suspended.
    func nextReplayed(on engine: Engine) -> Arrival? {
        while let name = lifecycle.takeReplayed() {
            let observers = engine.registry.state.withLock { $0.topics.observers(of: name) }
            if !observers.isEmpty { return Arrival(name: name, observers: observers) }
        }
        return nil
    }

    /// The next post that waited for its sender to be known.
    func nextVerified(on engine: Engine) -> Arrival? {
        // Asked before each post: the loop would make the list its own first, which takes 280 instructions.
        guard senders.hasVerified else { return nil }
        while let (name, sender, verdict) = senders.nextVerified() {
            switch verdict {
            case .believed:
                onPost?(name, sender)
                let observers = engine.registry.state.withLock { $0.topics.observers(of: name) }
                let arrival = Arrival(name: name, observers: observers).leavingOut(ownPostsFrom: sender, on: engine)
                if !arrival.observers.isEmpty { return arrival }
            case .refused: engine.counters.ignored.increment()
            case .unknown: engine.counters.dropped.increment()
            }
        }
        return nil
    }
}

extension Arrival {
    /// Without the observers that ignore their own center's posts, if this is one.
    fileprivate func leavingOut(ownPostsFrom sender: UnsafePointer<CChar>, on engine: Engine) -> Arrival {
        guard observers.contains(where: { $0.ignoresOwnPosts }), engine.outbox.ownName.isName(of: sender) else {
            return self
        }
        return Arrival(name: name, observers: observers.filter { !$0.ignoresOwnPosts })
    }
}
