// SPDX-License-Identifier: Apache-2.0

extension BusLink {
    /// Hears names for the peer itself, from now until `unsubscribe`. Each name may be subscribed once.
    ///
    /// The posts are passed to the peer's `handle(post:)`, on this thread, in their order among calls, signals and
    /// replies.
    ///
    /// - Parameter completion: called once the bus has confirmed everything, or with what prevented it; then nothing is
    ///   subscribed.
    package func subscribe(
        names: [NotifyName],
        prefixes: [NamePrefix] = [],
        then completion: @escaping (NotifyBusError?) -> Void
    ) {
        subscribe(BusLink.keys(names, prefixes), for: observerForPeer(), completion)
    }

    /// Hears names for a listener besides the peer, and reports who posted: the peer may hear the same names.
    ///
    /// The posts are passed to the listener, on this thread. A connection has one listener.
    package func subscribe(
        names: [NotifyName],
        prefixes: [NamePrefix] = [],
        for listener: any PostListener,
        then completion: @escaping (NotifyBusError?) -> Void
    ) {
        subscribe(BusLink.keys(names, prefixes), for: observer(for: listener), completion)
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
    package func unsubscribe(names: [NotifyName], prefixes: [NamePrefix] = []) {
        unsubscribe(BusLink.keys(names, prefixes), observerForPeer())
    }

    package func unsubscribe(names: [NotifyName], prefixes: [NamePrefix] = [], for listener: any PostListener) {
        unsubscribe(BusLink.keys(names, prefixes), observer(for: listener))
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
            callBus("GetId", []) { [self] answer in
                if answer.isOfLostConnection { return completion(.disconnected) }
                confirm(rest, keys, observer, completion)
            }
        }
    }

    /// The observer that stands for the peer.
    private func observerForPeer() -> Observer {
        if let peerObserver { return peerObserver }
        let observer = Observer(runner: .client(PeerPosts(self, for: .peer)), counters: counters) { _ in }
        peerObserver = observer
        return observer
    }

    private func observer(for listener: any PostListener) -> Observer {
        self.listener = listener
        if let listenerObserver { return listenerObserver }
        let observer = Observer(runner: .client(PeerPosts(self, for: .listener)), counters: counters) { _ in }
        listenerObserver = observer
        keepsSenders = true
        return observer
    }

    private static func keys(_ names: [NotifyName], _ prefixes: [NamePrefix]) -> [Topic.Key] {
        names.map { .name($0) } + prefixes.map { .prefix($0) }
    }
}

/// Who is notified of the posts of certain names besides the peer, and of who has posted them.
package protocol PostListener: AnyObject {
    /// - Parameter sender: the unique name of the connection that posted; it may have left the bus since.
    func handle(post name: NotifyName, from sender: String)
}

/// Passes the posts of subscribed names to the peer or to the listener as they come.
///
/// `@unchecked Sendable`: only the thread that drives the connection offers posts to it, and the connection, which keeps
/// the observer that this belongs to, outlives it.
final class PeerPosts: ObserverClient, @unchecked Sendable {
    enum Receiver { case peer, listener }

    private unowned let link: BusLink
    private let receiver: Receiver

    init(_ link: BusLink, for receiver: Receiver) { (self.link, self.receiver) = (link, receiver) }

    func wake(for observer: Observer) {
        while let name = observer.takeNext() {
            switch receiver {
            case .peer: link.peer?.handle(post: name)
            case .listener: link.listener?.handle(post: name, from: link.postSender)
            }
        }
    }

    func end() {}
}
