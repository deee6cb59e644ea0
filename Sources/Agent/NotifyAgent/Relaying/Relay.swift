// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore
import NotifyNames

/// Hears posts on behalf of sandboxed programs, whose proxies let no broadcasts in, and passes them on.
///
/// It has a connection of its own, because a program that may talk to one name of a connection can call all of its
/// objects. The agent decides who may observe, and in which state each program is.
final class Relay: CallHandler, PostListener {
    /// How the relay reports to the agent, which must not call the relay from within these.
    struct Reporter {
        /// The relay owns its name, or failed to get it for this reason.
        let opened: (BusFault?) -> Void
        let call: (BusCall, Request) -> Void
        /// A program has answered `tell`.
        let told: (String, Event.Reply) -> Void
        /// The relay hears from now on what a program has told it to, with `Register` or `AddNames`.
        let hears: (String) -> Void
        /// The relay has ended, and no longer hears for these programs. If another one has not taken its place, they need one.
        let lost: ([String], _ isReplaced: Bool) -> Void
    }

    /// A pending call. A program that gives two of them the same number is refused.
    private struct PendingCall: Hashable {
        let sender: String
        let serial: UInt32

        init(_ call: BusCall) { (sender, serial) = (call.sender, call.serial) }
    }

    private struct Pending {
        let owner: Owner
        /// The call counts as long as this exists.
        let lifetime: (any AnyObject & Sendable)?
        let consequence: Consequence?
    }

    /// What to do once the agent has accepted a call.
    private enum Consequence {
        case register(Subjects)
        case add(Subjects)
        case remove(Subjects)
    }

    /// A call to a program.
    enum ProgramCall: Hashable {
        case state(String)
        case posts(String)
    }

    private typealias RuleWaiter = (NotifyBusError?) -> Void

    /// How many calls may be on their way to the agent. The others wait here, where their owners take turns.
    private static let handOverLimit = 16

    /// How many match rules may be on their way to the bus before another call begins. A bus counts its answers to the agent's
    /// user.
    private static let ruleLimit = 256

    /// How long posts are queued for the programs that are to hear them before the bus is read again, in nanoseconds.
    /// While there is something to read, that takes most of the time: all programs' posts are in there.
    static let slice: Int64 = 500_000

    let receiver: Receiver
    var link: BusLink { receiver.link }
    let identity: Identity
    let reporter: Reporter
    private let quotas: Quotas
    var table: RelayTable
    /// Calls in the order in which they are handled, and what each owner may have pending.
    private(set) var intake: Intake
    /// Calls that have begun and are not answered.
    private var pending: [PendingCall: Pending] = [:]
    private var handOverCount = 0
    /// Programs that the agent lets observe, and for which nothing is heard yet.
    private var newcomers: Set<String> = []
    private var givesNameBack = false
    /// Whether it only keeps the name, until another relay takes it over.
    private var isRetired = false
    /// How many match rules the bus has been sent, or is to remove, and has not dealt with.
    private var rulesUnderWay = 0
    /// Calls to programs.
    var window = CallWindow<ProgramCall, LifecycleState>()
    /// What to do once everything posted so far has been read: the bus has been asked for the first of them, and is asked
    /// once more for all others.
    private var asking: [() -> Void] = []
    private var toBeAsked: [() -> Void] = []
    /// What waits until the posts before it have been queued, by number.
    var followers: [Int: () -> Void] = [:]
    var lastFollower = 0
    /// Calls of Synchronize that wait until something has been read, by number.
    private var waiters: [Int: [BusCall]] = [:]
    private var lastWaiter = 0
    /// Programs that could not take their last batch, and when to try again.
    var refusing: Set<String> = []
    var retryTime: MonotonicTime?
    private var rules = RuleQueue<RuleWaiter, NotifyBusError>()

    init(_ link: BusLink, _ reporter: Reporter, quotas: Quotas = Quotas()) {
        receiver = Receiver(link)
        self.reporter = reporter
        // Its callers are in sandboxes, and ask for nothing that these forbid.
        identity = Identity(link, servesMachine: true)
        intake = Intake(link, quotas)
        self.quotas = quotas
        table = RelayTable(room: quotas.pendingBytes)
    }

    // MARK: - The connection

    var keepsConnection: Bool { false }

    func linkIsReady(_ link: BusLink) {
        // ALLOW_REPLACEMENT, REPLACE_EXISTING, DO_NOT_QUEUE: that of the agent before this one may have yet to leave the bus.
        link.callBus("RequestName", [.string(RelayInterface.name), .uint32(7)]) { [reporter] answer in
            switch answer {
            case .failure(let fault): reporter.opened(fault)
            case .success(let values):
                // PRIMARY_OWNER, ALREADY_OWNER
                let isOwner = values.first?.uint32.map { $0 == 1 || $0 == 4 } ?? false
                reporter.opened(isOwner ? nil : .failed("Another program owns the name \(RelayInterface.name)."))
            }
        }
    }

    func linkIsLost(_ error: NotifyBusError) {
        reporter.opened(.failed("\(error)"))
        reporter.lost(table.clientNames, false)
        forgetEverything()
    }

    private func forgetEverything() {
        table = RelayTable(room: quotas.pendingBytes)
        intake = Intake(link, quotas)
        window = CallWindow()
        rules = RuleQueue()
        (pending, waiters, asking, toBeAsked, followers) = ([:], [:], [], [], [:])
        (refusing, retryTime, newcomers) = ([], nil, [])
        rulesUnderWay = 0
    }

    /// Gives up the name when there are no observers any more.
    func giveNameBack() {
        givesNameBack = true
        link.callBus("ReleaseName", [.string(RelayInterface.name)]) { _ in }
    }

    /// Serves no program any more, and answers no call: they turn to the relay that takes the name over. Until then it keeps the
    /// name.
    func retire() {
        isRetired = true
        forgetEverything()
    }

    func handle(_ signal: BusSignal) {
        signal.arguments.closeDescriptors()
        guard signal.sender == "org.freedesktop.DBus", signal.member == "NameLost",
            signal.arguments.compactMap(\.string) == [RelayInterface.name]
        else { return }
        // A program that has registered in the meantime sees the name go, and registers with the next relay.
        reporter.lost(table.clientNames, !givesNameBack)
    }

    // MARK: - Calls

    var mayBegin: Bool { !isRetired && handOverCount < Relay.handOverLimit && rulesUnderWay < Relay.ruleLimit }

    var mayBeginAtOnce: Bool { mayBegin }
    var statements: [String] { [] }

    func additionIsRefused(from sender: String) {}

    func begin(_ call: BusCall, by caller: Caller) throws(BusFault) {
        var call = call
        if try StandardInterfaces.answer(call, to: .relay, { .none }, on: link) { return }
        guard call.path == RelayInterface.path, call.interface == RelayInterface.name,
            RelayInterface.methods.contains(where: { $0.member == call.member })
        else {
            call.arguments.closeDescriptors()
            throw .unknownMethod(call)
        }
        guard pending[PendingCall(call)] == nil else {
            call.arguments.closeDescriptors()
            throw .invalidArguments("A call with this serial number is pending.")
        }
        let lifetime = call.lifetime
        call.lifetime = nil
        if call.member == RelayInterface.Synchronize.member {
            call.arguments.closeDescriptors()
            guard call.wantsReply else { return }
            pending[PendingCall(call)] = Pending(owner: caller.owner, lifetime: lifetime, consequence: nil)
            return synchronize(call)
        }
        let request = try Request.read(call)
        // A caller that wants no answer is asking nothing.
        if !call.wantsReply, request.isQuestion { return }
        let consequence: Consequence? =
            switch request {
            case .register(let statement, _): .register(statement.subjects)
            case .addNames(let names): .add(names)
            case .removeNames(let names): .remove(names)
            default: nil
            }
        pending[PendingCall(call)] = Pending(owner: caller.owner, lifetime: lifetime, consequence: consequence)
        handOverCount += 1
        reporter.call(call, request)
    }

    /// The agent has taken a call, and is about to answer it.
    func callIsTaken() {
        handOverCount -= 1
        serve()
    }

    private func reply(to call: BusCall, _ values: [BusValue] = []) {
        pending[PendingCall(call)] = nil
        link.reply(to: call, values)
    }

    private func refuse(_ call: BusCall, _ fault: BusFault) {
        pending[PendingCall(call)] = nil
        link.refuse(call, fault)
    }

    /// The agent has answered a call. It counts towards its owner's quota until the program is answered.
    func answer(_ call: BusCall, _ answer: BusAnswer, process: ProcessID?) {
        let values: [BusValue]
        switch answer {
        case .failure(let fault): return refuse(call, fault)
        case .success(let all): values = all
        }
        let sender = call.sender
        if case .register? = pending[PendingCall(call)]?.consequence {
            guard let process, let entry = pending[PendingCall(call)],
                let state = values.first?.string.flatMap(LifecycleState.init)
            else { return refuse(call, .failed("The connection has left the bus.")) }
            // At once: the agent may report next that it has left.
            if table.enter(sender, of: process, entry.owner, in: state) { newcomers.insert(sender) }
        }
        follow(sender) { [self] in carryOut(call, values) }
    }

    /// All posts so far are queued for the caller.
    private func carryOut(_ call: BusCall, _ values: [BusValue]) {
        let sender = call.sender
        switch pending[PendingCall(call)]?.consequence {
        case nil: reply(to: call, values)
        case .remove(let subjects):
            drop(subjects, of: sender)
            reply(to: call, values)
        case .add(let subjects):
            let (heard, added, replaced) = table.add(subjects, to: sender)
            let undo: (inout RelayTable) -> (unheard: Subjects, waiters: [Int]) = {
                let change = $0.remove(added, from: sender)
                return (change.unheard, change.waiters)
            }
            hear(heard, for: sender, inPlaceOf: replaced, undo: undo) { [self] error in
                if let error { return refuse(call, .failed(error.description)) }
                reply(to: call, values)
                reporter.hears(sender)
            }
        case .register(let subjects):
            if newcomers.remove(sender) == nil, let old = table.subjects(of: sender) {
                drop(old.subtracting(subjects), of: sender)
            }
            let (heard, _, replaced) = table.add(subjects, to: sender)
            hear(heard, for: sender, inPlaceOf: replaced, undo: { $0.stopHearing(sender) }) { [self] error in
                if let error {
                    let fault = BusFault.failed(error.description)
                    refuse(call, fault)
                    forget(sender, fault)
                    reporter.told(sender, .gone)
                } else {
                    reply(to: call, values)
                    reporter.hears(sender)
                    pass(to: sender)
                }
            }
        }
    }

    func emit(_ message: AgentInterface.Decided, to name: String) { link.emit(message, to: name, from: .relay) }

    /// A connection has left the bus.
    func forget(_ name: String) {
        forget(name, .failed("The connection has left the bus."))
    }

    private func forget(_ name: String, _ fault: BusFault) {
        let (unheard, due) = table.forget(name)
        release(unheard)
        endWaits(due, fault)
        window.forget(.state(name))
        window.forget(.posts(name))
        refusing.remove(name)
        newcomers.remove(name)
        callPrograms()
    }

    // MARK: - Rules

    /// A client no longer observes these.
    private func drop(_ subjects: Subjects, of client: String) {
        let change = table.remove(subjects, from: client)
        release(change.unheard)
        endWaits(change.waiters)
        if change.heard.isEmpty, change.replaced.isEmpty { return }
        hear(change.heard, for: client, inPlaceOf: change.replaced, undo: { $0.stopHearing(client) }) { _ in }
    }

    /// Starts to hear these, and calls `completion` when every later post of them will be heard.
    ///
    /// - Parameters:
    ///   - replaced: what is heard by these from then on.
    ///   - undo: undoes the change if the bus refuses them; returns what need not be heard any more, and the waiters
    ///     that need not wait any longer.
    private func hear(
        _ subjects: Subjects,
        for client: String,
        inPlaceOf replaced: Subjects = Subjects(),
        undo: @escaping (inout RelayTable) -> (unheard: Subjects, waiters: [Int]),
        then completion: @escaping RuleWaiter
    ) {
        if !subjects.isEmpty {
            let number = rules.begin()
            let count = subjects.names.count + subjects.prefixes.count
            rulesUnderWay += count
            receiver.subscribe(names: Array(subjects.names), prefixes: Array(subjects.prefixes), for: self) {
                [self] error in
                release(table.release(replaced))
                rulesHaveArrived(count)
                guard let error else { return settle(number) }
                rules.fail(client, error)
                let (unheard, due) = undo(&table)
                release(unheard)
                endWaits(due)
                // Names that others want as well may have been refused because of the rest.
                let isLost = error.code == .disconnected || error.code == .closed
                hearOneByOne(isLost ? Subjects() : table.needed(among: subjects), number)
            }
        } else {
            release(table.release(replaced))
        }
        // Another program may have asked for the same names just before.
        if !rules.wait(completion, of: client) { completion(nil) }
    }

    /// Starts to hear these, each for itself, and settles the request when the bus has replied about all.
    private func hearOneByOne(_ subjects: Subjects, _ number: Int) {
        var rest = subjects
        let one: Subjects
        if let name = rest.names.popFirst() {
            one = Subjects(names: [name])
        } else if let prefix = rest.prefixes.popFirst() {
            one = Subjects(prefixes: [prefix])
        } else {
            return settle(number)
        }
        receiver.subscribe(names: Array(one.names), prefixes: Array(one.prefixes), for: self) { [self, rest] error in
            if let error {
                let (losers, unheard, due) = table.refuse(one)
                for client in losers { rules.fail(client, error) }
                release(unheard)
                endWaits(due)
            }
            hearOneByOne(rest, number)
        }
    }

    private func settle(_ number: Int) {
        for (waiter, error) in rules.settle(number) { waiter(error) }
    }

    private func release(_ subjects: Subjects) {
        guard !subjects.isEmpty else { return }
        receiver.unsubscribe(names: Array(subjects.names), prefixes: Array(subjects.prefixes), for: self)
        let count = subjects.names.count + subjects.prefixes.count
        rulesUnderWay += count
        afterPosts { [self] in rulesHaveArrived(count) }
    }

    /// The bus has dealt with so many rules.
    private func rulesHaveArrived(_ count: Int) {
        rulesUnderWay = max(0, rulesUnderWay - count)
        serve()
    }

    // MARK: - States

    /// Puts a program into a state, and tells the agent when it is in force.
    ///
    /// The agent's connection may be ahead of this one: posts made before the agent was asked come first.
    func tell(_ name: String, _ state: LifecycleState) {
        afterPosts { [self] in follow(name) { [self] in change(name, to: state) } }
    }

    private func change(_ name: String, to state: LifecycleState) {
        guard table.contains(name) else { return reporter.told(name, .gone) }
        let (heard, unheard) = table.prepare(state, of: name)
        release(unheard)
        endWaits(table.takeWaiters(of: name))
        hear(heard, for: name, undo: { $0.stopHearing(name) }) { [self] error in
            if let error { return reporter.told(name, .failed(error.description)) }
            enqueue(.state(name), state, to: name)
        }
    }

    func setState(_ state: LifecycleState, of name: String) {
        let message = ObserverInterface.SetState(state: state, additions: 0)
        link.call(message, ofObserver: name) { [self] answer in
            window.hasAnswered(.state(name))
            switch answer {
            case .failure(let fault): reporter.told(name, fault.saysGone ? .gone : .failed(fault.message))
            case .success(let values):
                values.closeDescriptors()
                table.confirm(state, of: name)
                refusing.remove(name)
                // The program may answer any number.
                let dropped = values.first?.uint64.map { $0.addingSaturated(table.droppedCount(of: name)) }
                reporter.told(name, .done(dropped: dropped, isHoldingBack: false))
                pass(to: name)
            }
            callPrograms()
        }
    }

    // MARK: - Time

    var deadline: MonotonicTime? {
        if table.hasWork { return MonotonicTime(nanoseconds: 0) }
        let windowDeadline = window.deadline.map { MonotonicTime(nanoseconds: $0) }
        return .earlier(.earlier(retryTime, windowDeadline), intake.deadline(mayBegin: mayBegin))
    }

    func deadlineHasPassed() {
        takeSteps()
        if let retryTime, retryTime <= .now {
            let names = refusing
            (refusing, self.retryTime) = ([], nil)
            for name in names { pass(to: name) }
        }
        callPrograms()
        serve()
    }

    // MARK: - Synchronize

    /// Replies when the caller has read everything that has been posted so far.
    private func synchronize(_ call: BusCall) {
        afterPosts { [self] in follow(call.sender) { [self] in wait(call) } }
    }

    private func wait(_ call: BusCall) {
        lastWaiter += 1
        if let number = table.wait(lastWaiter, for: call.sender) {
            waiters[number, default: []].append(call)
        } else {
            reply(to: call)
        }
    }

    /// Does this when everything that has been posted so far has been read.
    private func afterPosts(_ work: @escaping () -> Void) {
        toBeAsked.append(work)
        if asking.isEmpty { askForPlace() }
    }

    /// Calls `completion` when everything that has been posted so far has been read, and the bus has named its sender if
    /// that matters.
    func readUp(then completion: @escaping () -> Void) {
        afterPosts { [self] in
            if receiver.isHoldingPostsBack { afterPosts(completion) } else { completion() }
        }
    }

    private func askForPlace() {
        (asking, toBeAsked) = (toBeAsked, [])
        link.callBus("GetId", []) { [self] _ in
            let works = asking
            asking = []
            for work in works { work() }
            if asking.isEmpty, !toBeAsked.isEmpty { askForPlace() }
        }
    }

    func endWaits(_ numbers: [Int], _ fault: BusFault? = nil) {
        for number in numbers {
            for call in waiters.removeValue(forKey: number) ?? [] {
                if let fault { refuse(call, fault) } else { reply(to: call) }
            }
        }
    }
}
