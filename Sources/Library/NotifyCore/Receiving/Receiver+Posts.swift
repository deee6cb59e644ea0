// SPDX-License-Identifier: Apache-2.0

// Posts: who observes them, and whether they are accepted.
extension Receiver {
    /// Passes an accepted post to the listeners that need to know its sender.
    ///
    /// - Returns: the post, without observers that ignore their own center's posts if it is one.
    func accept(_ arrival: Arrival, from sender: UnsafePointer<CChar>) -> Arrival {
        onPost?(arrival.name, sender)
        let isOwn = arrival.audience.ignoringCount > 0 && ownName.isName(of: sender)
        if arrival.audience.listenerCount > 0 {
            // Listeners may end the connection, and with it the message.
            let sender = String(cString: sender)
            for observer in arrival.audience.observers { observer.listener?.handle(post: arrival.name, from: sender) }
        }
        return isOwn ? Arrival(name: arrival.name, audience: arrival.audience.withoutIgnoring) : arrival
    }

    /// Determines whether a signal is a post that has observers, and whether to accept it.
    func arrival(from message: BusMessage) -> Arrival? {
        guard let text = message.postedName else { return message.looksLikePost ? ignore() : nil }
        let hash = fnv1a64(text)
        let found: (name: NotifyName?, arrival: Arrival?, isForged: Bool) = registry.state.withLock { state in
            let topic = state.topics.topic(named: text, hash: hash)
            if let topic, state.topics.prefixes.isEmpty, let name = topic.name {
                // The common case: one name, already known, nothing to create.
                guard message.isPost(of: name) else { return (nil, nil, true) }
                return (name, Arrival(name: name, audience: topic.audience), false)
            }
            // If only names are observed, an unwanted post comes from a registration that has just ended, from a
            // forger, or from the wide rules, in which case there are too many to look closer.
            if topic == nil, state.topics.prefixes.isEmpty, reach.hearsEverything { return (nil, nil, false) }
            guard let known = names.find(text), message.isPost(of: known) else { return (nil, nil, true) }
            let audience = state.topics.addingPrefixObservers(of: known, to: topic?.audience ?? Audience())
            return (known, Arrival(name: known, audience: audience), false)
        }
        if found.isForged { return ignore() }
        guard let name = found.name, let arrival = found.arrival else { return nil }
        if arrival.audience.isEmpty { return nil }
        guard lifecycle.isOpen else {
            if !lifecycle.isEntering { counters.noteLost() }
            return nil
        }
        if case .owned = name.storage.scope { return verify(name, arrival, message) }
        if senders.isHolding { return verify(name, arrival, message) }
        guard let sender = message.sender else { return arrival }
        // If the name has an owner, the bytes alone do not decide whether the post is accepted.
        if message.descriptorCount == 0 { posts.keep(name, from: sender, message.bytes) }
        return accept(arrival, from: sender)
    }

    private func ignore() -> Arrival? {
        counters.noteRejected()
        return nil
    }

    /// Accepts a post if its sender may post it; asks the bus if the sender is unknown.
    private func verify(_ name: NotifyName, _ arrival: Arrival, _ message: BusMessage) -> Arrival? {
        guard let sender = message.sender.map({ String(cString: $0) }) else { return ignore() }
        switch senders.judge(name, from: sender, link.users[sender]) {
        case .believed: return accept(arrival, from: sender)
        case .refused: return ignore()
        case .held(let isFirst, let isDropped):
            if isDropped { counters.noteLost() }
            if isFirst {
                link.findUser(of: sender) { [self] user in senders.learn(user: try? user.get(), of: sender) }
            }
            return nil
        }
    }

    /// The next name that was posted while the program was suspended.
    func nextReplayed() -> Arrival? {
        while let name = lifecycle.takeReplayed() {
            let audience = registry.state.withLock { $0.topics.audience(of: name) }
            if !audience.isEmpty { return Arrival(name: name, audience: audience) }
        }
        return nil
    }

    /// The next post that was held until its sender was known.
    func nextVerified() -> Arrival? {
        while let (name, sender, verdict) = senders.nextVerified() {
            switch verdict {
            case .believed:
                let audience = registry.state.withLock { $0.topics.audience(of: name) }
                if audience.isEmpty { continue }
                let arrival = accept(Arrival(name: name, audience: audience), from: sender)
                if !arrival.audience.isEmpty { return arrival }
            case .refused: counters.noteRejected()
            case .unknown: counters.noteLost()
            }
        }
        return nil
    }
}

/// A post that has arrived, and its observers.
struct Arrival {
    let name: NotifyName
    let audience: Audience
}
