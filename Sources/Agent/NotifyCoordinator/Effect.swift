// SPDX-License-Identifier: Apache-2.0

package import NotifyNames

/// The effects of the coordinator, to be carried out in order.
package enum Effect: Sendable {
    // MARK: Replies to calls

    case answer(CallID, Answer)
    case refuse(CallID, Refusal)

    // MARK: To observers

    /// Inform a connection of its state; ends in `told`.
    ///
    /// - Parameters:
    ///   - additions: how many calls of AddNames it has had carried out since it registered.
    ///   - marks: just before that, find the point in the stream of posts from which they set bits; ends in
    ///     `markIsReached`.
    case tell(Recipient, LifecycleState, additions: UInt32, marks: Bool)
    /// Deliver names that were posted while a connection was suspended; ends in `delivered` if there are any. An empty
    /// list says that there are no more.
    case deliver(Recipient, [NotifyName])
    /// Have a connection remember the states of names, to report them to the next agent if this one dies; ends in
    /// `statesAreKept`.
    case keepStates(Recipient, [Heritage.State])
    /// Inform a connection who has decided on its state.
    case tellDecider(Recipient, Decider)
    /// Wait until no post is held back any more; ends in `nothingIsHeldBack`.
    case awaitHeldBack(ConnectionID)

    // MARK: To everyone

    case announce(StateChange)
    case announceFact(source: String, fact: Fact)

    // MARK: Rules on the bus

    /// Hear posts of these names and prefixes; ends in `rulesAreSet` when the bus has confirmed it. Without any it is a
    /// question to the bus that shows when it has come this far.
    case subscribe(Ticket, names: [NotifyName], prefixes: [NamePrefix])
    /// Stop hearing them; ends in `rulesAreSet` when the bus has come this far, if there is a ticket.
    case unsubscribe(Ticket?, names: [NotifyName], prefixes: [NamePrefix])

    // MARK: Processes

    /// Stop a process if this user may still do so; ends in `froze`.
    case freeze(ProcessID, onBehalfOf: UInt32)
    /// Let it continue; ends in `thawed`.
    case thaw(ProcessID)
    /// Watch whether a process is stopped, or no longer do so.
    case look(ProcessID, Bool)
    /// Stop these processes with all that belongs to them: the program naps. Ends in `frozeProgram`.
    case freezeProgram(NapProgram, [ProcessID])
    case thawProgram(NapProgram)
    /// Report which programs are in use, from now on; ends in `areUsed`. nil: no longer.
    case followUses(UseQuestion?)
    /// Read what the bus has queued for a stopped process, and end the connection; ends in `drained`.
    case drain(ConnectionID)
    case stopDraining(ConnectionID)

    // MARK: Inside the agent

    /// A name of interest is wanted for the first time, or no longer.
    case interest(NotifyName, isWanted: Bool)
    /// The changes that were pending have completed, or have taken too long.
    case changesAreInForce(UInt64)

    // MARK: Connections and processes

    /// A connection observes: watch for its end.
    case begin(ConnectionID)
    /// A connection is forgotten: close what belongs to it.
    case forget(ConnectionID, name: String)
    /// A connection is awaited that has yet to register with the relay: watch for its end.
    case watchEnd(ConnectionID, name: String)
    /// It hears by the relay, or has ended.
    case ignoreEnd(ConnectionID, name: String)
    /// A process is no longer of interest.
    case forgetProcess(ProcessID)
    /// A process has its first observer.
    case present(ProcessID)
    /// The first connection is about to come.
    case observersCome
    /// The last connection is gone.
    case observersHaveGone

    /// All names that were handed over are subscribed.
    case isInherited
    /// Much of what was kept is no longer needed.
    case giveMemoryBack
    /// Report `alarm` at this time of the monotonic clock, in nanoseconds; it replaces an earlier one.
    case alarm(at: Int64)
    /// Report `napAlarm` at this time; it replaces an earlier one. nil: not at all.
    case napAlarm(at: Int64?)

    /// A connection that is told something.
    package struct Recipient: Sendable {
        package let id: ConnectionID
        package let name: String
        /// Whether a relay passes it on.
        package let isRelayed: Bool
    }

    /// The reply to a call.
    package enum Answer: Hashable, Sendable {
        case done
        /// - Parameter isComplete: whether `pending` is everything that the connection can have missed.
        case registered(LifecycleState, pending: [NotifyName], isComplete: Bool)
        case connections(Int)
        case stamp(UInt64)
        /// What a state was, and the stamp of the new one, or 0 if it has stayed.
        case swapped(UInt64, stamp: UInt64)
        case value(UInt64)
    }

    /// A connection has changed its state.
    package struct StateChange: Equatable, Sendable {
        package let id: ConnectionID
        package let name: String
        package let process: ProcessID
        package let application: String
        package let from: LifecycleState
        package let to: LifecycleState
    }
}

/// Why a call is refused, as a sentence.
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

    /// The caller can't be identified.
    package static func unidentified(_ name: String) -> Refusal {
        Refusal(.accessDenied, "The process of \(name) has ended, or the bus does not know it.")
    }

    /// The caller is in a sandbox.
    package static func inSandbox(_ sandbox: String) -> Refusal {
        Refusal(
            .accessDenied,
            "A program in \(sandbox) can only report its own state, not see or change that of others."
        )
    }

    static func noSuchTarget(_ target: Target) -> Refusal {
        Refusal(
            .noSuchTarget,
            "No observer matches '\(target)'; 'notify-lifecycle list' shows all observers."
        )
    }
}
