// SPDX-License-Identifier: Apache-2.0

import NotifyNames

extension Coordinator {
    /// Subscribes to names for a connection, unless that is done already.
    ///
    /// - Parameter synchronizes: whether to ask the bus something even if everything is subscribed already.
    mutating func subscribe(
        _ subjects: Subjects,
        for id: ConnectionID,
        then waiter: ObservingConnection.ProxyWaiter,
        synchronizes: Bool = false
    ) {
        guard let observer = directory[id] else { return }
        if observer.isRelayed { return resume(waiter, id, nil) }
        directory[id]?.proxyWaiters.append(waiter)
        perform(proxies.subscribe(subjects, for: id, of: observer.user, synchronizes: synchronizes))
    }

    /// Ends all subscriptions for a connection.
    mutating func endProxy(of id: ConnectionID) {
        perform(proxies.unsubscribeAll(for: id))
        _ = takePending(of: id)
        _ = takeDelivered(to: id)
    }

    /// Carries out the effects of the proxies.
    mutating func perform(_ effects: [ProxySubscriptions.Effect]) {
        for effect in effects {
            switch effect {
            case .subscribe(let ticket, let names, let prefixes):
                emit(.subscribe(ticket, names: names, prefixes: prefixes))
            case .unsubscribe(let ticket, let names, let prefixes):
                emit(.unsubscribe(ticket, names: names, prefixes: prefixes))
            case .subscribed(let id, let failure):
                if failure != nil { noteGaps(of: id) }
                let waiters = directory.change(id) { observer in
                    defer { observer.proxyWaiters = [] }
                    return observer.proxyWaiters
                }
                for waiter in waiters ?? [] { resume(waiter, id, failure) }
                interimIsSubscribed(id)
            }
        }
    }

    /// The bus has refused the agent some names, usually since it allows no more rules. A connection that the bus has
    /// forgotten must not miss their posts.
    private mutating func noteGaps(of id: ConnectionID) {
        let subscribed = proxies.subscribed(for: id)
        directory.change(id) { observer in
            observer.comingBack.lacks(observer.subjects.subtracting(subscribed), isParked: observer.isParked)
        }
    }

    /// The names of a connection are subscribed, or this prevented it.
    mutating func resume(_ waiter: ObservingConnection.ProxyWaiter, _ id: ConnectionID, _ failure: String?) {
        switch waiter {
        case .transition: advance(id) { $0.namesAreSubscribed(failure) }
        case .parking: namesAreSubscribedForParking(id)
        case .addition(let call):
            directory.change(id) { $0.additions &+= 1 }
            if let failure { refuse(call, Refusal(.failed, failure)) } else { answer(call, .done) }
            // A process is not stopped before what it has added is held.
            if let process = directory[id]?.process { freezeIfSuspended(process) }
        case .renewal(let call):
            guard let observer = directory[id] else { return }
            defer { freezeIfSuspended(observer.process) }
            if let failure { return refuse(call, Refusal(.failed, failure)) }
            if observer.inheritance == .none {
                answer(call, .registered(observer.transition.wish, pending: [], isComplete: false))
                tellDecider(id)
                keepStates(of: observer.subjects.names, by: id)
            } else {
                directory[id]?.inheritance = .none
                let isComplete = observer.inheritance == .whole
                answer(call, .registered(observer.state, pending: [], isComplete: isComplete))
                tellDecider(id)
                hasEntered(id, isInForce: false)
            }
            reconsider([id])
            updateLook(at: observer.process)
        case .registration(let call): completeRegistration(id, call)
        case .inheritance:
            if failure != nil { directory[id]?.inheritance = .partial }
            isInherited(id)
        }
    }

    /// Replies to a connection that is suspended, or that was parked and runs again.
    ///
    /// The names of the latter stay with the agent until it has confirmed that it hears them itself.
    private mutating func completeRegistration(_ id: ConnectionID, _ call: CallID) {
        guard let observer = directory[id] else { return }
        // Requests made in the meantime count.
        guard observer.comingBack.isUnderWay, observer.decision.state == .foreground else {
            directory[id]?.comingBack = ComingBack()
            for name in observer.comingBack.names where observer.subjects.contains(name) { _ = keep(name, for: id) }
            answer(call, .registered(.suspended, pending: [], isComplete: false))
            tellDecider(id)
            hasEntered(id, isInForce: false)
            reconsider([id])
            return updateLook(at: observer.process)
        }
        let names = takePending(of: id)
        if observer.comingBack.stage == .registering, !names.isEmpty {
            directory.change(id) { observer in
                observer.comingBack.stage = .reporting(names)
                observer.proxyWaiters.append(.registration(call))
            }
            return perform(proxies.resubscribe(id))
        }
        for name in names { _ = keep(name, for: id) }
        directory[id]?.comingBack.report()
        let (reported, isComplete) = (observer.comingBack.names, observer.comingBack.isComplete)
        answer(call, .registered(.foreground, pending: reported, isComplete: isComplete))
        tellDecider(id)
        hasEntered(id, isInForce: true)
        perform(directory[id]?.transition.want(.foreground, by: []), for: id)
        // It may follow the desktop now, and its predecessor did not.
        reconsider([id])
        updateLook(at: observer.process)
    }

    // MARK: - Posts

    mutating func posted(_ name: NotifyName) {
        let subscribers = proxies.subscribers(of: name)
        // A rule may briefly outlive the observation of its name.
        for (prefix, id) in subscribers.byPrefix {
            if directory[id]?.subjects.prefixes.contains(prefix) == true {
                _ = keep(name, for: id)
            } else {
                interim.keep(name, for: id, &ledger)
            }
        }
        var isNews = false
        for id in subscribers.byName where directory[id]?.subjects.names.contains(name) == true && keep(name, for: id) {
            isNews = true
        }
        if !isNews, !subscribers.byName.isEmpty { perform(proxies.dropRule(of: name)) }
    }

    /// Sets a bit for an observed name. The caller must know that it is observed, as checking a thousand prefixes again
    /// would cost more than everything else.
    ///
    /// - Returns: whether another post of the name would be news.
    mutating func keep(_ name: NotifyName, for id: ConnectionID) -> Bool {
        directory[id]?.keep(name, &ledger) ?? false
    }

    /// Sets bits for names found in the stream of a parked connection. Neither it nor the one that has replaced it gets what
    /// is pending before that: see `streamIsRead`.
    mutating func keep(_ names: [NotifyName], for id: ConnectionID) {
        guard let observer = directory[id] else { return }
        for name in names where observer.subjects.contains(name) { _ = keep(name, for: id) }
    }

    // MARK: - Deliveries

    /// Delivers names as if they were posted now.
    mutating func deliverMissed(_ names: [NotifyName], to id: ConnectionID) {
        guard let observer = directory[id] else { return }
        let observed = names.filter(observer.subjects.contains)
        switch observer.state {
        case .background: break
        case .suspended: keep(observed, for: id)
        case .foreground:
            let counted = observed.filter { ledger.keepPending($0, of: observer.user) }
            deliver(counted, to: id)
            directory[id]?.dropped += UInt64(observed.count - counted.count)
        }
    }

    /// Delivers what is pending for a connection, even if nothing is: the connection then knows that it has everything.
    mutating func deliverPending(to id: ConnectionID) {
        guard let names = directory[id]?.pending.take(), let observer = directory[id] else { return }
        if names.isEmpty { emit(.deliver(observer.recipient, [])) } else { deliver(names, to: id) }
    }

    /// Delivers names, which count towards their user's quota until the connection has read them: it may be stopped
    /// before.
    private mutating func deliver(_ names: [NotifyName], to id: ConnectionID) {
        guard !names.isEmpty, let observer = directory[id] else { return }
        directory[id]?.deliveries.append(names)
        // This does not wait: it takes over the place of the call that it follows.
        window.begin(.delivery(id), of: observer.owner, now: now.nanoseconds)
        emit(.deliver(observer.recipient, names))
    }

    /// A connection has read its oldest delivery.
    mutating func deliveryIsRead(_ id: ConnectionID) {
        guard let observer = directory[id], let names = observer.deliveries.first else { return }
        directory[id]?.deliveries.removeFirst()
        ledger.forgetPending(names, of: observer.user)
        if observer.deliveries.count == 1 { window.hasAnswered(.delivery(id)) }
    }

    /// Takes back what a connection is not known to have read.
    mutating func takeDelivered(to id: ConnectionID) -> [NotifyName] {
        guard let observer = directory[id], !observer.deliveries.isEmpty else { return [] }
        let names = Array(observer.deliveries.joined())
        directory[id]?.deliveries = []
        window.hasAnswered(.delivery(id))
        ledger.forgetPending(names, of: observer.user)
        return names
    }

    mutating func takePending(of id: ConnectionID) -> [NotifyName] {
        guard let user = directory[id]?.user, let names = directory[id]?.pending.take() else { return [] }
        ledger.forgetPending(names, of: user)
        return names
    }

    /// Drops what was pending for a name that it no longer observes.
    mutating func dropPending(of id: ConnectionID) {
        guard let observer = directory[id], !observer.pending.isEmpty else { return }
        ledger.forgetPending(directory[id]?.dropPending() ?? [], of: observer.user)
    }
}
