// SPDX-License-Identifier: Apache-2.0

/// Who observes what over the bus, and what the reading thread is to do about it.
final class Registry: Sendable {
    enum Command {
        /// Send the topic's rules to the bus.
        case add(Topic)
        /// Take them off again.
        case remove(Topic)
        /// Find out that everything the bus has routed so far has arrived.
        case barrier(Barrier)
        /// Connect, although there may be no observers.
        case open
        /// Do something with the connection, whatever state it is in.
        case perform(@Sendable (borrowing BusLink) -> Void)
    }

    struct State {
        var topics = TopicTable()
        var commands: [Command] = []
    }

    let state = Monitor(State())

    /// Enters an observer under keys, and asks for the rules that are missing.
    func add(_ observer: Observer, to keys: [Topic.Key]) -> [Topic] {
        state.withLock { state in
            keys.map { key in
                let (topic, isNew) = state.topics.add(observer, to: key)
                if isNew {
                    state.commands.append(.add(topic))
                } else if case .failed = topic.state {
                    topic.state = .adding
                    state.commands.append(.add(topic))
                }
                return topic
            }
        }
    }

    /// Takes an observer off its topics.
    ///
    /// - Returns: whether rules have become superfluous.
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

    /// Takes an observer off the topics that have these keys.
    ///
    /// - Returns: whether rules have become superfluous.
    func remove(_ observer: Observer, fromKeys keys: [Topic.Key]) -> Bool {
        remove(observer, from: state.withLock { state in keys.compactMap { state.topics.find($0) } })
    }

    /// Whether the bus has the rules of these topics.
    ///
    /// - Returns: those from the first on that it has not answered for.
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
    func waitUntilActive(_ topics: [Topic], deadline: MonotonicTime?) -> NotifyBusError? {
        // Many topics become active one by one: those that are need no second look.
        var pending = topics[...]
        let outcome: NotifyBusError?? = state.wait(until: deadline) { _ in
            while let topic = pending.first {
                switch topic.state {
                case .active: pending.removeFirst()
                case .adding: return nil
                case .lost: return .some(.disconnected)
                case .failed(let error): return .some(error)
                }
            }
            return .some(nil)
        }
        return outcome ?? .timedOut("confirm the registration")
    }

    func takeCommands() -> [Command] {
        state.withLock { state in
            defer { state.commands.removeAll() }
            return state.commands
        }
    }

    /// What is observed over the bus.
    var subjects: (names: [String], prefixes: [String]) {
        state.withLock { state in
            var names: [String] = []
            var prefixes: [String] = []
            state.topics.forEach { topic in
                switch topic.key {
                case .name(let name): names.append(name.string)
                case .prefix(let prefix): prefixes.append(prefix)
                }
            }
            return (names, prefixes)
        }
    }

    /// Changes topics, and wakes those who wait for them.
    func settle(_ change: (inout TopicTable) -> Void) {
        state.withLock { change(&$0.topics) }
        state.wakeAll()
    }
}

/// Something that will have happened.
final class Barrier: Sendable {
    private let outcome = Monitor<Result<Void, NotifyBusError>?>(nil)

    var isComplete: Bool { outcome.withLock { $0 != nil } }

    func complete(_ result: Result<Void, NotifyBusError>) {
        outcome.withLock { if case nil = $0 { $0 = result } }
        outcome.wakeAll()
    }

    func wait(until deadline: MonotonicTime?) throws(NotifyBusError) {
        let result: Result<Void, NotifyBusError>? = outcome.wait(until: deadline) { $0 }
        guard let result else { throw .timedOut("answer") }
        try result.get()
    }
}
