// SPDX-License-Identifier: Apache-2.0

package import NotifyNames

/// What the coordinator wants done, in this order.
package enum Effect: Sendable {
    // MARK: Answers to calls

    case answer(CallID, Answer)
    case refuse(CallID, Refusal)

    // MARK: To observers

    /// Tell a connection its state; ends in `told`.
    ///
    /// - Parameter marks: just before, find the place in the stream of posts from which on they set bits; ends in
    ///   `markIsReached`.
    case tell(ConnectionID, LifecycleState, marks: Bool)
    /// Hand over names that were posted while a connection was suspended; if there are any, it ends in `delivered`. None
    /// says that there are no more.
    case deliver(ConnectionID, [NotifyName])
    /// Tell a connection who has decided its state.
    case tellDecider(ConnectionID, Decider)
    /// Wait until no post is held back any more; ends in `nothingIsHeldBack`.
    case awaitHeldBack(ConnectionID)

    // MARK: To everyone

    case announce(StateChange)
    case announceFact(source: String, fact: String)

    // MARK: Rules on the bus

    /// Hear posts of these names and prefixes; ends in `rulesAreSet` when the bus has confirmed it. With neither it is a
    /// question to the bus that says when it has come this far.
    case subscribe(Ticket, names: [NotifyName], prefixes: [NamePrefix])
    /// Hear them no more; ends in `rulesAreSet` when the bus has come this far, if there is a ticket.
    case unsubscribe(Ticket?, names: [NotifyName], prefixes: [NamePrefix])

    // MARK: Processes

    /// Stop a process if it may still be done on behalf of this user; ends in `froze`.
    case freeze(ProcessID, onBehalfOf: UInt32)
    /// Let it go on; ends in `thawed`.
    case thaw(ProcessID)
    /// Look whether a process stands still, or no longer.
    case look(ProcessID, Bool)
    /// Read what the bus has queued for a stopped process, and end the connection; ends in `drained`.
    case drain(ConnectionID)
    case stopDraining(ConnectionID)

    // MARK: What is wanted inside the agent

    /// Somebody wants a name of interest and nobody did, or nobody does any more.
    case interest(NotifyName, isWanted: Bool)
    /// From now on each post of a name that a resident wants is kept for it; or this was in the way, and it has what it
    /// had before.
    case residentIsHeld(ResidentID, failure: String?)
    /// A name is pending for a resident for which none was. It is told so again when it has taken what is pending.
    case residentHasPending(ResidentID)

    /// The changes that were under way are over, or have taken too long.
    case changesAreInForce(UInt64)

    // MARK: Comings and goings

    /// A connection observes: watch for its end.
    case begin(ConnectionID)
    /// A connection is forgotten: close what belongs to it.
    case forget(ConnectionID, name: String)
    /// Nothing of a process is of interest any more.
    case forgetProcess(ProcessID)
    /// A process observes that did not.
    case present(ProcessID)
    /// The first connection is about to come.
    case observersCome
    /// The last connection has gone.
    case observersHaveGone

    /// Much of what was kept is not needed any more.
    case giveMemoryBack
    /// Say `alarm` at this moment of the monotonic clock, in nanoseconds; it takes the place of an earlier one.
    case alarm(at: Int64)

    /// What a call is answered with.
    package enum Answer: Equatable, Sendable {
        case done
        /// - Parameter isComplete: whether `pending` is all that the connection can have missed.
        case registered(LifecycleState, pending: [NotifyName], isComplete: Bool)
        case connections(Int)
        case stamp(UInt64)
        case value(UInt64)
    }

    /// A connection is in another state.
    package struct StateChange: Equatable, Sendable {
        package let id: ConnectionID
        package let name: String
        package let process: ProcessID
        package let application: String
        package let from: LifecycleState
        package let to: LifecycleState
    }
}

/// Why a call is refused, in a sentence.
package struct Refusal: Error, Hashable, Sendable {
    package enum Kind: Sendable {
        case invalidArguments, accessDenied, limitExceeded, failed, noSuchTarget, notRegistered, notObserved, timedOut
    }

    package let kind: Kind
    package let message: String

    package init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }

    static let notRegistered = Refusal(.notRegistered, "This connection has not registered.")

    static func noSuchTarget(_ target: Target) -> Refusal {
        Refusal(
            .noSuchTarget,
            "No observer matches '\(target)'; 'notify-lifecycle list' shows all observers."
        )
    }
}
