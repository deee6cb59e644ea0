// SPDX-License-Identifier: Apache-2.0

package import NotifyNames

/// The events of the coordinator. Facts about callers come with the calls, as it asks no questions itself.
package enum Event: Sendable {
    // MARK: Calls. Each ends in one `answer` or `refuse`.

    /// Indirect, so that the others are small.
    indirect case register(CallID, Newcomer)
    /// A connection observes more.
    case addNames(CallID, from: String, Subjects)
    /// It would have, but its call was refused before it was looked at.
    case additionWasRefused(from: String)
    case removeNames(CallID, from: String, Subjects)
    /// A program reports its own state.
    case report(CallID, from: String, LifecycleState)
    /// A program asks to follow the desktop, or no longer to do so.
    case followDesktop(CallID, from: String, Bool)
    /// A person puts connections into a state.
    ///
    /// - Parameter strangers: processes of the target that the caller currently may not stop; see
    ///   `Coordinator.processes(of:)`. Needed only if it `freezes`.
    case setState(CallID, by: Caller, Target, LifecycleState, freezes: Bool, strangers: Set<ProcessID>)
    /// A person undoes what was set; for everyone if there is no target.
    case release(CallID, by: Caller, Target?)
    case setNameState(CallID, by: Caller, NotifyName, UInt64)
    /// Sets a state if it is the first of the two.
    case swapNameState(CallID, by: Caller, NotifyName, UInt64, UInt64)
    case getNameState(CallID, NotifyName)
    /// A person turns naps off, or on again.
    case setNaps(CallID, by: Caller, Bool)

    // MARK: Results of effects

    /// The result of `subscribe` or `unsubscribe`: the bus has processed it.
    case rulesAreSet(Ticket, failure: String?)
    /// The result of the mark of `tell`: later posts of subscribed names set bits.
    case markIsReached(ConnectionID)
    /// The result of `tell`.
    case told(ConnectionID, Reply)
    /// The result of `deliver` with names: the connection has read them. The results come in the order of the calls.
    case delivered(ConnectionID)
    /// The result of `keepStates`.
    case statesAreKept(ConnectionID)
    /// The result of `awaitHeldBack`.
    case nothingIsHeldBack(ConnectionID)
    /// The result of `freeze`.
    case froze(ProcessID, FreezeOutcome)
    /// The result of `thaw`.
    case thawed(ProcessID, failure: String?)
    /// The result of `drain`: the stream has been read, and the connection is shut down.
    case drained(ConnectionID)
    /// Names found in the stream of a parked connection. They come after `drained`, to
    /// `Coordinator.receiver(ofStream:)`.
    case found(ConnectionID, [NotifyName])
    /// Names that were posted while a program that is started for them registered.
    case missed(ConnectionID, [NotifyName])

    // MARK: What happens

    /// A post of a subscribed name.
    case posted(NotifyName)
    /// The connection has left the bus.
    case connectionEnded(ConnectionID)
    case processEnded(ProcessID)
    /// A process was stopped, or continued, by another program than the agent.
    case processStopped(ProcessID)
    case processContinued(ProcessID)
    /// The current state of a name that the agent posts itself; nil if unknown.
    case eventState(NotifyName, UInt64?)
    /// The agent itself observes these, and no others any more: they start programs.
    case agentObserves(Subjects)
    /// What the sources of facts have found since the last time.
    case news([String: SourceNews])
    /// A source was started, or stopped for this reason: its earlier facts no longer count.
    case sourceWasReset(String, SourceCondition?)
    /// A part of the agent waits for all pending changes. Ends in `changesAreInForce`.
    case awaitChanges(UInt64)
    /// The time set by `alarm` has come.
    case alarm
    /// The same for `napAlarm`.
    case napAlarm
    /// The answer to `followUses`, and again whenever it changes.
    case areUsed([NapRule.Use: Set<FocusedProcess>], question: UInt64)
    /// These processes are stopped for a program that naps, apart from those in its unit.
    case frozeProgram(NapProgram, [ProcessID])
    /// A process that the agent has stopped has been sent a signal that asks it to end.
    case isToEnd(ProcessID)
    /// The same for one of a program that naps.
    case programIsToEnd(NapProgram)
    /// The agent before this one has handed over what it knows. These of its processes exist. Ends in `isInherited`.
    indirect case inherit(Heritage, [Newcomer.ProcessFacts])
    /// All observers have registered since: facts about others are of no use.
    case heritageIsOld
    /// Posts that the agent before this one had not read are lost.
    case heritageIsPartial
    /// The agent is about to hand over: from now on it hears prefixes itself for programs that hear them by the relay.
    case hearForRelayed
    /// It does not hand over after all.
    case leaveToRelay
    /// The relay hears from now on what this connection has registered, or has added.
    case relayHears(String)
    /// That was some time ago: this connection has told all that it observes.
    case relayHearsAll(String)
    /// The agent terminates. These processes stay as they are.
    case ending(keeping: Set<ProcessID>)

    /// How an observer replied.
    package enum Reply: Sendable {
        /// - Parameter isHoldingBack: whether posts have come whose sender is still being determined.
        case done(dropped: UInt64?, isHoldingBack: Bool)
        case failed(String)
        /// It has added names that are not subscribed yet, and is to be informed once more when they are.
        case namesAdded
        /// It is no longer on the bus.
        case gone
    }

    package enum FreezeOutcome: Equatable, Sendable {
        case frozen
        /// The requester may no longer do that to this process.
        case denied
        case failed(String)
    }
}

/// A connection that registers, and what is known of it.
package struct Newcomer: Sendable {
    /// Its unique name.
    package var name: String
    package var user: UInt32
    package var process: ProcessFacts
    /// Whether a duplicate of its socket was provided, so that it can be parked.
    package var hasSocket: Bool
    /// Whether a relay hears for it, and keeps what is posted while it is suspended.
    package var isRelayed: Bool
    package var statement: Statement

    package init(
        name: String,
        user: UInt32,
        process: ProcessFacts,
        hasSocket: Bool,
        isRelayed: Bool = false,
        statement: Statement
    ) {
        self.name = name
        self.user = user
        self.process = process
        self.hasSocket = hasSocket
        self.isRelayed = isRelayed
        self.statement = statement
    }

    /// What is known of a process.
    package struct ProcessFacts: Hashable, Sendable {
        package var id: ProcessID
        /// Empty if it belongs to none.
        package var application: String
        /// The ID of the login session in which it runs; nil if it was started by the user's service manager, or is in
        /// none.
        package var session: String?
        /// Whether its exit will be reported.
        package var isWatched: Bool

        package init(id: ProcessID, application: String = "", session: String? = nil, isWatched: Bool = true) {
            self.id = id
            self.application = application
            self.session = session
            self.isWatched = isWatched
        }
    }

    /// What a connection says about itself.
    package struct Statement: Sendable {
        package var subjects: Subjects
        /// Its previous state; nil if it is new, and has no reason to be anywhere but in the foreground.
        package var state: LifecycleState?
        /// Its unique name before it was reconnected.
        package var previous = ""
        /// Other previous names: registrations of it that were not answered.
        package var earlier: [String] = []
        /// Who decided on that state, as it was informed; empty if it does not know.
        package var decider = ""
        /// The state that its program had reported last to an earlier agent.
        package var reported: LifecycleState?
        package var followsDesktop = false
        /// For display.
        package var program = ""
        /// The states of names that it had set under an earlier agent.
        package var states: [(name: NotifyName, entry: NameStateTable.Entry)] = []

        package init(_ subjects: Subjects) { self.subjects = subjects }
    }
}
