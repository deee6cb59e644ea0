// SPDX-License-Identifier: Apache-2.0

package import NotifyNames

/// What the coordinator is told. Facts about callers come with the calls: it asks nobody itself.
package enum Event: Sendable {
    // MARK: Calls. Each ends in one `answer` or `refuse`.

    case register(CallID, Newcomer)
    /// A connection observes more.
    case addNames(CallID, from: String, Subjects)
    case removeNames(CallID, from: String, Subjects)
    /// A program says what it is in.
    case report(CallID, from: String, LifecycleState)
    /// A program asks to follow the desktop, or no longer.
    case followDesktop(CallID, from: String, Bool)
    /// Somebody puts connections into a state.
    ///
    /// - Parameter strangers: processes of the target that the caller may not stop, as things are now; see
    ///   `Coordinator.processes(of:)`. Needed only if it `freezes`.
    case setState(CallID, by: Caller, Target, LifecycleState, freezes: Bool, strangers: Set<ProcessID>)
    /// Somebody takes back what was set; of everyone if there is no target.
    case release(CallID, by: Caller, Target?)
    case setNameState(CallID, by: Caller, NotifyName, UInt64)
    case getNameState(CallID, NotifyName)

    // MARK: Answers to effects

    /// The answer to `subscribe` or `unsubscribe`: the bus has dealt with it.
    case rulesAreSet(Ticket, failure: String?)
    /// The answer to the mark of `tell`: later posts of held names set bits.
    case markIsReached(ConnectionID)
    /// The answer to `tell`.
    case told(ConnectionID, Reply)
    /// The answer to `deliver` with names: the connection has read them. The answers come in the order of the calls.
    case delivered(ConnectionID)
    /// The answer to `awaitHeldBack`.
    case nothingIsHeldBack(ConnectionID)
    /// The answer to `freeze`.
    case froze(ProcessID, FreezeOutcome)
    /// The answer to `thaw`.
    case thawed(ProcessID, failure: String?)
    /// The answer to `drain`: the stream is read, and the connection is shut down.
    case drained(ConnectionID)
    /// Names that were found in the stream of a parked connection. They come after `drained`, to
    /// `Coordinator.receiver(ofStream:)`.
    case found(ConnectionID, [NotifyName])

    // MARK: What happens

    /// A post of a name that is subscribed to.
    case posted(NotifyName)
    /// The connection has left the bus.
    case connectionEnded(ConnectionID)
    case processEnded(ProcessID)
    /// A process stands still, or runs again, and the agent has not done it.
    case processStopped(ProcessID)
    case processContinued(ProcessID)
    /// What a name that the agent posts itself stands for; nil if nobody knows.
    case eventState(NotifyName, UInt64?)
    /// Somebody inside the agent wants names: these, and no others any more. Ends in `residentIsHeld`, once for all such
    /// events until then.
    case residentWants(ResidentID, Subjects, of: UInt32)
    /// A resident has used up what was pending: each of these names is news again. Ends in `residentIsHeld`.
    case residentTook(ResidentID)
    case residentLeft(ResidentID)
    /// What the sources of facts have found since the last time.
    case news([String: SourceNews])
    /// A source was started, or stopped for this reason: what it has said no longer counts.
    case sourceWasReset(String, SourceCondition?)
    /// Somebody inside the agent waits for all changes that are under way. Ends in `changesAreInForce`.
    case awaitChanges(UInt64)
    /// The moment of `alarm` has come.
    case alarm
    /// The agent ends.
    case ending

    /// How an observer answered.
    package enum Reply: Sendable {
        /// - Parameter isHoldingBack: whether posts have come whose sender the bus is still asked for.
        case done(dropped: UInt64?, isHoldingBack: Bool)
        case failed(String)
        /// It is not on the bus any more.
        case gone
    }

    package enum FreezeOutcome: Equatable, Sendable {
        case frozen
        /// Whoever wanted it may not do that to this process any more.
        case denied
        case failed(String)
    }
}

/// Who calls.
package struct Caller: Sendable {
    package let user: UInt32
    /// Whether it is in a sandbox, and so may change nobody's state.
    package let isSandboxed: Bool

    package init(user: UInt32, isSandboxed: Bool = false) {
        self.user = user
        self.isSandboxed = isSandboxed
    }

    /// Whether it may change what belongs to a user.
    package func mayChange(_ owner: UInt32) -> Bool { user == 0 || user == owner }
}

/// A connection that registers, and what is known of it.
package struct Newcomer: Sendable {
    /// Its unique name.
    package var name: String
    package var user: UInt32
    package var process: ProcessFacts
    /// Whether a duplicate of its socket was given, so that it can be parked.
    package var hasSocket: Bool
    package var statement: Statement

    package init(name: String, user: UInt32, process: ProcessFacts, hasSocket: Bool, statement: Statement) {
        self.name = name
        self.user = user
        self.process = process
        self.hasSocket = hasSocket
        self.statement = statement
    }

    /// What is known of a process.
    package struct ProcessFacts: Sendable {
        package var id: ProcessID
        /// Empty if it belongs to none.
        package var application: String
        /// The id of the login session that it runs in; nil if it is the user's service manager that runs it, or nobody.
        package var session: String?
        /// Whether its end will be told.
        package var isWatched: Bool

        package init(id: ProcessID, application: String = "", session: String? = nil, isWatched: Bool = true) {
            self.id = id
            self.application = application
            self.session = session
            self.isWatched = isWatched
        }
    }

    /// What a connection says of itself.
    package struct Statement: Sendable {
        package var subjects: Subjects
        /// What it was in before; nil if it is new, and has no reason to be in anything but the foreground.
        package var state: LifecycleState?
        /// Its unique name before it was reconnected.
        package var previous = ""
        /// Other names that it had before: registrations of it that were not answered.
        package var earlier: [String] = []
        /// Who decided that state, as it was told; empty if it does not know.
        package var decider = ""
        package var followsDesktop = false
        /// For people.
        package var program = ""
        /// The states of names that it had set under an agent before this one.
        package var states: [(name: NotifyName, entry: NameStateTable.Entry)] = []

        package init(_ subjects: Subjects) { self.subjects = subjects }
    }
}
