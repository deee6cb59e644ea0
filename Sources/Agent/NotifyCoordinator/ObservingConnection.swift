// SPDX-License-Identifier: Apache-2.0

import NotifyNames

/// A registered observing connection.
struct ObservingConnection: Hashable {
    /// The progress of parking a connection.
    enum Parking: Hashable {
        case none
        /// The names are being subscribed, and the stream is read up to the mark.
        case draining
        /// The bus has forgotten the connection; the entry waits for the process to return.
        case parked
    }

    /// Those waiting until its names are subscribed.
    enum ProxyWaiter: Hashable {
        case transition
        case parking
        /// It has added names.
        case addition(CallID)
        /// It registers, and is suspended, or runs again after it was parked.
        case registration(CallID)
        /// It registers once more.
        case renewal(CallID)
        /// The agent before this one has handed it over.
        case inheritance
    }

    /// What the agent before this one has handed over.
    enum Inheritance: Hashable {
        case none
        /// Everything that the connection has missed is known.
        case whole
        /// Posts may be missing.
        case partial
    }

    let id: ConnectionID
    /// The unique name.
    let name: String
    let process: ProcessID
    let user: UInt32
    /// Whose quotas limit what it observes.
    let holder: Ledger.Holder
    /// The owner that loses a part of the window of calls as long as it does not reply.
    let owner: Owner
    var program: String
    var subjects: Subjects
    var transition = Transition<RequestID>(.foreground)
    var pending = PendingNames()
    /// How many posts it has dropped itself, by its last report.
    var reportedDropped: UInt64 = 0
    /// How many names were lost because there was no room.
    var dropped: UInt64 = 0
    /// When it entered its state, in seconds since 1970.
    var since: UInt64
    var parking = Parking.none
    /// The requests that wait until its stream has been read.
    var parkingRequests: [RequestID] = []
    /// Its state once its process continues.
    var stateAfterParking = LifecycleState.foreground
    var comingBack = ComingBack()
    /// What was delivered to it, one list per call, until it is known to have read that. It counts towards its user's
    /// quota.
    var deliveries: [[NotifyName]] = []
    /// Whether posts are to set bits from the moment it is informed of its state.
    var isToBeMarked = false
    var proxyWaiters: [ProxyWaiter] = []
    /// How many calls of AddNames have been carried out since it registered.
    var additions: UInt32 = 0
    /// Whether there is a duplicate of its socket, so that it can be parked.
    var hasSocket: Bool
    /// Whether a relay hears for it, and keeps what is posted while it is suspended.
    let isRelayed: Bool
    /// Whether its state is the one that it had under an earlier agent.
    var isRemembered: Bool
    /// What is known of it only because the agent before this one has handed it over: until it registers.
    var inheritance = Inheritance.none
    /// What a person has set for it and not released.
    var person: LifecycleState?
    /// What a source of an earlier agent decided; until this agent's source has reported something.
    var remembered: Decision?
    /// Whether it has asked to follow the desktop.
    var followsDesktop: Bool
    /// The state decided for it, and by whom.
    var decision = Decision(.foreground, by: .rule)
    /// Who it believes has decided on that.
    var toldDecider: Decider

    init(_ newcomer: Newcomer, id: ConnectionID, agentUser: UInt32?, now: Timestamp) {
        self.id = id
        name = newcomer.name
        process = newcomer.process.id
        user = newcomer.user
        holder = newcomer.holder
        owner = Owner(newcomer.process.id, agentUser: agentUser)
        program = newcomer.statement.program
        subjects = newcomer.statement.subjects
        since = now.wallClock
        hasSocket = newcomer.hasSocket && newcomer.process.isWatched
        isRelayed = newcomer.isRelayed
        isRemembered = newcomer.statement.state != nil
        followsDesktop = newcomer.statement.followsDesktop
        toldDecider = newcomer.statement.believedDecider
    }

    var state: LifecycleState { transition.state }
    var recipient: Effect.Recipient { Effect.Recipient(id: id, name: name, isRelayed: isRelayed) }

    /// Whether its names are being subscribed so that it can be parked.
    var waitsForParking: Bool { proxyWaiters.contains { if case .parking = $0 { true } else { false } } }

    /// Whether it has yet to be told that it is registered, perhaps once more.
    var isRegistering: Bool {
        transition.isEntering
            || proxyWaiters.contains {
                switch $0 {
                case .registration, .renewal: true
                case .addition, .transition, .parking, .inheritance: false
                }
            }
    }

    /// Whether it is as the agent before this one has left it, and is to stay so: that is in force before it has registered,
    /// which it can't while it is stopped.
    var isLeftSuspended: Bool { wasLeftSuspended && transition.wish == .suspended }
    var wasLeftSuspended: Bool { inheritance != .none && transition.isEntering && state == .suspended }

    var isParked: Bool { if case .none = parking { false } else { true } }

    /// Whether the bus may queue posts for the connection, so that a stop of its process would do harm. It may as long as
    /// the connection has not said that it is in its state. For one that hears by a relay it queues a single message.
    var mayBeQueuedFor: Bool {
        if isRelayed || isParked { return false }
        return !((transition.isSettled || transition.isEntering) && state != .foreground)
    }

    mutating func changed<Result>(by change: (inout ObservingConnection) -> Result) -> Result { change(&self) }
}

extension Newcomer.Statement {
    /// Who decided on its state, as far as the connection knows.
    var believedDecider: Decider { decider.isEmpty ? .rule : Decider(name: decider) }
}

/// A process that has, or had, observing connections.
struct ObservingProcess: Hashable {
    let facts: Newcomer.ProcessFacts
    /// What a person has set for the whole process and not released.
    var wish: LifecycleState?
    /// Whether that was set under the agent before this one, since when its connections may have been changed one by one.
    var isWishInherited = false
    /// Whether a person has released it after a request for its application, which then does not apply to it.
    var isReleased = false
    /// The state that it has reported.
    var report: LifecycleState?
    var freezing = Freezing()
    /// Includes parked ones.
    var connections: Set<ConnectionID> = []
    /// For how many of them the bus may queue posts.
    var queued = 0

    init(_ facts: Newcomer.ProcessFacts) { self.facts = facts }

    var id: ProcessID { facts.id }
    var application: String { facts.application }

    /// Whether it must be remembered although none of its connections observes.
    var isWorthRemembering: Bool { wish != nil || isReleased || report != nil }
}

// What is kept for a connection that doesn't listen.
extension ObservingConnection {
    /// A name that it observes was posted.
    ///
    /// - Returns: whether another post of the name would be news.
    mutating func keep(_ name: NotifyName, _ ledger: inout Ledger) -> Bool {
        guard transition.isCollecting else { return true }
        if pending.contains(name) { return false }
        guard pending.hasRoom, ledger.keepPending(name, of: user) else {
            dropped += 1
            return true
        }
        _ = pending.insert(name)
        return false
    }

    /// Takes out what is pending but no longer observed.
    mutating func dropPending() -> [NotifyName] {
        var gone: [NotifyName] = []
        let subjects = subjects
        pending.remove { name in
            guard !subjects.contains(name) else { return false }
            gone.append(name)
            return true
        }
        return gone
    }
}

/// A call to which a connection has yet to reply.
enum ObserverCall: Hashable {
    case state(ConnectionID)
    /// All that was delivered to it.
    case delivery(ConnectionID)
    /// The states that it is to remember.
    case states(ConnectionID)
}

extension Newcomer {
    /// Whose quotas limit what it observes: all instances of an application in a sandbox are one.
    var holder: Ledger.Holder {
        guard isRelayed else { return Ledger.Holder(user: user) }
        let application = process.application
        return Ledger.Holder(user: user, sandbox: application.isEmpty ? "Process \(process.id.pid)" : application)
    }
}
