// SPDX-License-Identifier: Apache-2.0

extension BusLink {
    /// Hears names for the peer itself, from now until `release`. Each name may be held once.
    ///
    /// The posts are passed to the peer's `handle(post:on:)`, on this thread, in their order among calls, signals and
    /// replies.
    ///
    /// - Parameter completion: called once the bus has confirmed everything, or with what prevented it; then nothing is
    ///   held.
    package func hold(
        names: [NotifyName],
        prefixes: [NamePrefix] = [],
        then completion: @escaping @Sendable (NotifyBusError?, borrowing BusLink) -> Void
    ) {
        hold(BusLink.keys(names, prefixes), for: observing.peerObserver(on: engine), completion)
    }

    /// Hears names for a listener besides the peer, and reports who posted: the peer may hold the same names.
    ///
    /// The posts are passed to the listener, on this thread. A connection has one listener.
    package func hold(
        names: [NotifyName],
        prefixes: [NamePrefix] = [],
        for listener: any PostListener,
        then completion: @escaping @Sendable (NotifyBusError?, borrowing BusLink) -> Void
    ) {
        hold(BusLink.keys(names, prefixes), for: observing.observer(for: listener, on: engine), completion)
    }

    private func hold(
        _ keys: [Topic.Key],
        for observer: Observer?,
        _ completion: @escaping @Sendable (NotifyBusError?, borrowing BusLink) -> Void
    ) {
        guard let observer, let topics = try? engine.registry.add(observer, to: keys) else {
            return completion(.closed, self)
        }
        observing.run(engine.registry.takeCommands(), on: engine)
        confirm(topics[...], keys, observer, completion)
    }

    /// Stops hearing these names.
    package func release(names: [NotifyName], prefixes: [NamePrefix] = []) {
        if let observer = observing.peerObserver(on: engine) { release(BusLink.keys(names, prefixes), observer) }
    }

    package func release(names: [NotifyName], prefixes: [NamePrefix] = [], for listener: any PostListener) {
        release(BusLink.keys(names, prefixes), observing.observer(for: listener, on: engine))
    }

    /// Whether posts have come whose sender is still being determined. They are passed on once the bus has replied, out
    /// of order.
    package var isHoldingPostsBack: Bool { observing.senders.isHolding }

    private func release(_ keys: [Topic.Key], _ observer: Observer) {
        if engine.registry.remove(observer, fromKeys: keys) {
            observing.run(engine.registry.takeCommands(), on: engine)
        }
    }

    /// Checks the topics once the bus has replied about the rules that were sent; again, if it takes other rules.
    private func confirm(
        _ topics: ArraySlice<Topic>,
        _ keys: [Topic.Key],
        _ observer: Observer,
        _ completion: @escaping @Sendable (NotifyBusError?, borrowing BusLink) -> Void
    ) {
        switch engine.registry.outcome(of: topics) {
        case .failure(let error):
            release(keys, observer)
            completion(error, self)
        case .success(let rest) where rest.isEmpty:
            completion(nil, self)
        case .success(let rest):
            callBus("GetId", []) { answer, link in
                if case .failure(let fault) = answer, fault.name == BusFault.lost.name {
                    return completion(.disconnected, link)
                }
                link.confirm(rest, keys, observer, completion)
            }
        }
    }

    private static func keys(_ names: [NotifyName], _ prefixes: [NamePrefix]) -> [Topic.Key] {
        names.map { .name($0) } + prefixes.map { .prefix($0) }
    }
}

/// The engine that keeps a client, and so outlives it.
///
/// `@unchecked Sendable`: the reference never changes, and an `Engine` is `Sendable`; the compiler rejects only `unowned`.
private struct UnownedEngine: @unchecked Sendable { unowned let engine: Engine }

/// Passes posts to the peer as they come.
final class PeerClient: ObserverClient {
    private let peer: any BusPeer
    private let engine: UnownedEngine

    init(peer: any BusPeer, engine: Engine) {
        self.peer = peer
        self.engine = UnownedEngine(engine: engine)
    }

    func wake(for observer: Observer) {
        while let name = observer.takeNext() {
            peer.handle(post: name, on: BusLink(observing: engine.engine.observing, engine: engine.engine))
        }
    }

    func end() {}
}

/// A listener, which is notified of posts and their senders.
package protocol PostListener: AnyObject, Sendable {
    /// - Parameter sender: the unique name of the connection that posted; it may have left the bus since.
    func handle(post name: NotifyName, from sender: String, on link: borrowing BusLink)
}

/// Passes posts to a listener as they come.
final class ListenerClient: ObserverClient {
    let listener: any PostListener
    private let engine: UnownedEngine

    init(listener: any PostListener, engine: Engine) {
        self.listener = listener
        self.engine = UnownedEngine(engine: engine)
    }

    func wake(for observer: Observer) {
        let engine = engine.engine
        while let name = observer.takeNext() {
            let link = BusLink(observing: engine.observing, engine: engine)
            listener.handle(post: name, from: engine.observing.postSender, on: link)
        }
    }

    func end() {}
}
