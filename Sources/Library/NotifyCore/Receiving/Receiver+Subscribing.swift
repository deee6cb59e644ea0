// SPDX-License-Identifier: Apache-2.0

extension Receiver {
    /// Hears names for a listener, from now until `unsubscribe`. It may subscribe each name once.
    ///
    /// The posts are passed to it on this thread, in their order among calls, signals and replies.
    ///
    /// - Parameter completion: called once the bus has confirmed everything, or with what prevented it; then nothing is
    ///   subscribed.
    package func subscribe(
        names: [NotifyName],
        prefixes: [NamePrefix] = [],
        for listener: any PostListener,
        then completion: @escaping (NotifyBusError?) -> Void
    ) {
        subscribe(Receiver.keys(names, prefixes), for: observer(for: listener), completion)
    }

    private func subscribe(
        _ keys: [Topic.Key],
        for observer: Observer,
        _ completion: @escaping (NotifyBusError?) -> Void
    ) {
        guard let topics = try? registry.add(observer, to: keys) else {
            return completion(.closed)
        }
        run(registry.takeCommands())
        confirm(topics[...], keys, observer, completion)
    }

    /// Stops hearing these names.
    package func unsubscribe(names: [NotifyName], prefixes: [NamePrefix] = [], for listener: any PostListener) {
        unsubscribe(Receiver.keys(names, prefixes), observer(for: listener))
    }

    private func unsubscribe(_ keys: [Topic.Key], _ observer: Observer) {
        if registry.remove(observer, fromKeys: keys) {
            run(registry.takeCommands())
        }
    }

    /// Checks the topics once the bus has replied about the rules that were sent; again, if it takes other rules.
    private func confirm(
        _ topics: ArraySlice<Topic>,
        _ keys: [Topic.Key],
        _ observer: Observer,
        _ completion: @escaping (NotifyBusError?) -> Void
    ) {
        switch registry.outcome(of: topics) {
        case .failure(let error):
            unsubscribe(keys, observer)
            completion(error)
        case .success(let rest) where rest.isEmpty:
            completion(nil)
        case .success(let rest):
            link.callBus("GetId", []) { [self] answer in
                if answer.isOfLostConnection { return completion(.disconnected) }
                confirm(rest, keys, observer, completion)
            }
        }
    }

    /// The observer that stands for a listener.
    private func observer(for listener: any PostListener) -> Observer {
        if let known = listeners.first(where: { $0.listener === listener }) { return known }
        let observer = Observer(runner: .listener(ListenerReference(listener)), counters: counters) { _ in }
        listeners.append(observer)
        return observer
    }

    private static func keys(_ names: [NotifyName], _ prefixes: [NamePrefix]) -> [Topic.Key] {
        names.map { .name($0) } + prefixes.map { .prefix($0) }
    }
}
