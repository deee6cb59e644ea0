// SPDX-License-Identifier: Apache-2.0

// Posts: who observes them, and whether they are accepted.
extension BusLink {
    /// A post equal to one that was read recently, if it has observers.
    func arrival(of post: PostCache.Post) -> Arrival? {
        let audience = registry.state.withLock { $0.topics.audience(of: post.name) }
        if audience.isEmpty { return nil }
        let arrival = Arrival(name: post.name, audience: audience)
        if audience.ignoringCount == 0, onPost == nil, !keepsSenders { return arrival }
        return post.sender.withUnsafeBufferPointer { bytes in
            guard let sender = bytes.baseAddress else { return arrival }
            if keepsSenders { postSender = String(cString: sender) }
            onPost?(post.name, sender)
            return arrival.leavingOut(postsOf: ownName, from: sender)
        }
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
        if keepsSenders { postSender = message.sender.map { String(cString: $0) } ?? "" }
        guard lifecycle.isOpen else {
            if !lifecycle.isEntering { counters.dropped.increment() }
            return nil
        }
        if case .owned = name.storage.scope { return verify(name, arrival, message) }
        if senders.isHolding { return verify(name, arrival, message) }
        guard let sender = message.sender else { return arrival }
        // If the name has an owner, the bytes alone do not decide whether the post is accepted.
        if message.descriptorCount == 0 { posts.keep(name, from: sender, message.bytes) }
        onPost?(name, sender)
        return arrival.leavingOut(postsOf: ownName, from: sender)
    }

    private func ignore() -> Arrival? {
        counters.ignored.increment()
        return nil
    }

    /// Accepts a post if its sender may post it; asks the bus if the sender is unknown.
    private func verify(_ name: NotifyName, _ arrival: Arrival, _ message: BusMessage) -> Arrival? {
        guard let sender = message.sender.map({ String(cString: $0) }) else { return ignore() }
        switch senders.judge(name, from: sender, users[sender]) {
        case .believed:
            onPost?(name, sender)
            return arrival.leavingOut(postsOf: ownName, from: sender)
        case .refused: return ignore()
        case .held(let isFirst, let isDropped):
            if isDropped { counters.dropped.increment() }
            if isFirst {
                findUser(of: sender) { [self] user in senders.learn(user: try? user.get(), of: sender) }
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
                onPost?(name, sender)
                if keepsSenders { postSender = sender }
                let audience = registry.state.withLock { $0.topics.audience(of: name) }
                let arrival = Arrival(name: name, audience: audience).leavingOut(postsOf: ownName, from: sender)
                if !arrival.audience.isEmpty { return arrival }
            case .refused: counters.ignored.increment()
            case .unknown: counters.dropped.increment()
            }
        }
        return nil
    }
}

extension Arrival {
    /// Without the observers that ignore their own center's posts, if this is one.
    func leavingOut(postsOf ownName: OwnName, from sender: UnsafePointer<CChar>) -> Arrival {
        guard audience.ignoringCount > 0, ownName.isName(of: sender) else { return self }
        return Arrival(name: name, audience: audience.withoutIgnoring)
    }
}
