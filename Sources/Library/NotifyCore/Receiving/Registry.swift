// SPDX-License-Identifier: Apache-2.0

/// The registrations with the bus, and the work that follows from them for the reading thread.
final class Registry: Sendable {
    enum Command {
        /// Send the topic's rules to the bus.
        case add(Topic)
        /// Remove them again.
        case remove(Topic)
        /// Find out whether everything that the bus has routed so far has arrived.
        case barrier(Barrier)
        /// Connect, even if there are no observers.
        case open
        /// Do something with the connection, whatever state it is in.
        case perform(@Sendable (BusLink) -> Void)
    }

    struct State {
        var topics = TopicTable()
        var commands: [Command] = []
        /// Why there is no connection, while the leader keeps trying to get one.
        var absence: NotifyBusError?
        /// Topics with notices that have changed since the notices were last checked.
        let changes = TopicChanges()
        /// Whether the center was closed.
        var isClosed = false
    }

    /// The outcome of a registration.
    enum Outcome {
        case live
        /// It will be completed once the bus is there.
        case delayed(NotifyBusError)
        case failed(NotifyBusError)
    }

    /// A callback that receives the outcome of a registration once. The first of its topics for which the bus has not
    /// answered keeps it.
    struct Notice {
        let observer: Observer
        let waitsForBus: Bool
        /// Whether it is enough that the registration is kept until there is a bus.
        let acceptsDelay: Bool
        var topics: ArraySlice<Topic>
        let tell: @Sendable (Result<Void, NotifyBusError>) -> Void
    }

    let state = Monitor(State())

    /// Registers an observer under keys, and requests the missing rules.
    ///
    /// - Parameter waitsForBus: whether to keep the registration if there is no bus, and to complete it when there is
    ///   one.
    func add(
        _ observer: Observer,
        to keys: [Topic.Key],
        waitsForBus: Bool = false
    ) throws(NotifyBusError) -> [Topic] {
        try state.withLock { state throws(NotifyBusError) in
            if state.isClosed { throw .closed }
            return keys.map { key in
                let (topic, isNew) = state.topics.add(observer, to: key)
                if waitsForBus, !topic.waitsForBus {
                    topic.waitsForBus = true
                    topic.noteChange()
                }
                if isNew {
                    state.commands.append(.add(topic))
                } else if case .failed = topic.state {
                    (topic.state, topic.losses) = (.adding, 0)
                    state.commands.append(.add(topic))
                }
                return topic
            }
        }
    }

    /// Removes an observer from its topics.
    ///
    /// - Returns: whether rules have become unnecessary.
    func remove(_ observer: Observer, from topics: [Topic]) -> Bool {
        state.withLock { state in
            var isSuperfluous = false
            for topic in topics where state.topics.remove(observer, from: topic) {
                state.commands.append(.remove(topic))
                isSuperfluous = true
            }
            return isSuperfluous
        }
    }

    /// Removes an observer from the topics that have these keys.
    ///
    /// - Returns: whether rules have become unnecessary.
    func remove(_ observer: Observer, fromKeys keys: [Topic.Key]) -> Bool {
        remove(observer, from: topics(of: keys))
    }

    /// Whether the bus has the rules of these topics.
    ///
    /// - Returns: the topics from the first one for which the bus has not answered.
    func outcome(of topics: ArraySlice<Topic>) -> Result<ArraySlice<Topic>, NotifyBusError> {
        state.withLock { _ in
            var rest = topics
            while let topic = rest.first {
                switch topic.state {
                case .active: rest.removeFirst()
                case .adding: return .success(rest)
                case .lost: return .failure(.disconnected)
                case .failed(let error): return .failure(error)
                }
            }
            return .success(rest)
        }
    }

    /// Waits until the bus has the rules of all these topics.
    ///
    /// - Parameter waitsForBus: whether they may keep waiting for a bus; then this does not wait for one.
    func waitUntilActive(_ topics: [Topic], waitsForBus: Bool, deadline: MonotonicTime?) -> Outcome {
        // Many topics become active one by one: those that already are need no second check.
        var pending = topics[...]
        let outcome = state.wait(until: deadline) { state in state.outcome(of: &pending, waitsForBus: waitsForBus) }
        if let outcome { return outcome }
        let error = NotifyBusError.timedOut("confirm the registration")
        return waitsForBus ? .delayed(error) : .failed(error)
    }

    /// Reports the outcome of a registration once: immediately if it is known.
    func notify(_ notice: Notice) {
        let due = state.withLock { $0.place(notice) }
        if let (notice, result) = due { notice.tell(result) }
    }

    /// The registration has ended; nothing is reported.
    func forgetNotice(of observer: Observer, in topics: [Topic]) {
        state.withLock { _ in
            for topic in topics { topic.forgetNotice(of: observer) }
        }
    }

    /// Takes the commands if they are all about rules, which any thread may carry out.
    func takeRuleCommands() -> [Command]? {
        state.withLock { state in
            let areRules = state.commands.allSatisfy { command in
                switch command {
                case .add, .remove: true
                case .barrier, .open, .perform: false
                }
            }
            guard areRules else { return nil }
            defer { state.commands.removeAll() }
            return state.commands
        }
    }

    /// The topics whose rules the bus may have: also those that are not observed any more, and whose removal has yet to be
    /// carried out.
    var topicsWithRules: [Topic] {
        state.withLock { state in
            var topics: [Topic] = []
            state.topics.forEach { topics.append($0) }
            for case .remove(let topic) in state.commands { topics.append(topic) }
            return topics
        }
    }

    /// - Returns: false if commands are not carried out any more.
    func append(_ command: Command) -> Bool {
        state.withLock { state in
            if state.isClosed { return false }
            state.commands.append(command)
            return true
        }
    }

    /// Accepts nothing more.
    ///
    /// - Returns: the commands that have yet to be carried out.
    func endCommands() -> [Command] {
        state.withLock { state in
            state.isClosed = true
            defer { state.commands.removeAll() }
            return state.commands
        }
    }

    func takeCommands() -> [Command] {
        state.withLock { state in
            defer { state.commands.removeAll() }
            return state.commands
        }
    }

    /// The topics observed over the bus.
    var subjects: (names: [String], prefixes: [String]) {
        state.withLock { state in
            var names: [String] = []
            var prefixes: [String] = []
            state.topics.forEach { topic in
                switch topic.key {
                case .name(let name): names.append(name.string)
                case .prefix(let prefix): prefixes.append(prefix.string)
                }
            }
            return (names, prefixes)
        }
    }

    var allTopics: [Topic] {
        state.withLock { state in
            var all: [Topic] = []
            state.topics.forEach { all.append($0) }
            return all
        }
    }

    /// The topics that have these keys, as far as there are any.
    func topics(of keys: [Topic.Key]) -> [Topic] {
        state.withLock { state in keys.compactMap { state.topics.find($0) } }
    }

    /// The names of which posts may have been missed on a lost connection.
    var namesHeard: [NotifyName] {
        state.withLock { state in
            var names: [NotifyName] = []
            state.topics.forEach { topic in
                if topic.wasActive, case .name(let name) = topic.key { names.append(name) }
            }
            return names
        }
    }

    /// Changes topics, and wakes those that wait for them.
    func settle(_ change: (inout TopicTable) -> Void) {
        settle(changing: { change(&$0.topics) })
    }

    /// Changes topics when the connection is made or lost.
    func settle(absence: NotifyBusError?, _ change: (inout TopicTable) -> Void) {
        settle(changing: { state in
            change(&state.topics)
            state.absence = absence
            // Those that wait for a bus may have to wait longer.
            state.topics.forEach { $0.noteChange() }
        })
    }

    /// The audience of a name.
    func audience(of name: NotifyName) -> Audience { state.withLock { $0.topics.audience(of: name) } }

    /// Everything that waited for the bus is live.
    func settleWaiting() {
        settle(absence: nil) { topics in
            topics.forEach { if case .adding = $0.state { $0.state = .active } }
        }
    }

    /// Fails everything pending, and accepts nothing more.
    func close() {
        settle(changing: { state in
            state.topics.forEach { $0.state = .failed(.closed) }
            state.isClosed = true
        })
    }

    private func settle(changing change: (inout State) -> Void) {
        let due = state.withLock { state in
            change(&state)
            return state.takeDueNotices()
        }
        state.wakeAll()
        for (notice, result) in due { notice.tell(result) }
    }
}

extension Registry.State {
    /// - Returns: nil while the bus has not answered for some of the topics; those before them are removed.
    fileprivate func outcome(of topics: inout ArraySlice<Topic>, waitsForBus: Bool) -> Registry.Outcome? {
        while let topic = topics.first {
            switch topic.state {
            case .active:
                topics.removeFirst()
            case .adding:
                // If no observer was waiting for a bus, it would have failed.
                guard topic.waitsForBus, let absence else { return nil }
                return waitsForBus ? .delayed(absence) : .failed(absence)
            case .lost:
                return waitsForBus ? .delayed(absence ?? .disconnected) : .failed(.disconnected)
            case .failed(let error):
                return .failed(error)
            }
        }
        return .live
    }

    /// Leaves a notice with the first topic for which the bus has not answered.
    ///
    /// - Returns: the notice, if its outcome is known.
    fileprivate func place(_ notice: Registry.Notice) -> (Registry.Notice, Result<Void, NotifyBusError>)? {
        var notice = notice
        switch outcome(of: &notice.topics, waitsForBus: notice.waitsForBus) {
        case .live: return (notice, .success(()))
        case .failed(let error): return (notice, .failure(error))
        case .delayed where notice.acceptsDelay: return (notice, .success(()))
        case .delayed, nil:
            notice.topics.first?.add(notice, changes)
            return nil
        }
    }

    fileprivate func takeDueNotices() -> [(Registry.Notice, Result<Void, NotifyBusError>)] {
        if changes.topics.isEmpty { return [] }
        let changed = changes.topics
        changes.topics = []
        return changed.flatMap { $0.takeNotices().compactMap { place($0) } }
    }
}

/// Topics that have changed, and have notices.
///
/// `@unchecked Sendable`: touched only with the lock of the owning `Registry` held.
final class TopicChanges: @unchecked Sendable {
    var topics: [Topic] = []
}
