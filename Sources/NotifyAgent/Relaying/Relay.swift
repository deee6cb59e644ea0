// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore
import NotifyNames

/// Hears posts on behalf of sandboxed programs, whose proxies let no broadcasts in, and passes them on.
///
/// It has a connection of its own, because whoever may talk to one name of a connection can call all of its objects, and
/// threads of its own, so that posts don't delay changes of state. The agent decides who may observe, and in which state
/// each program is.
///
/// `@unchecked Sendable`: only the thread that reads the connection touches anything in it.
final class Relay: BusPeer, PostListener, @unchecked Sendable {
    /// How the relay reports to the agent, on the relay's thread.
    struct Outlet: Sendable {
        /// The relay owns its name, or failed to get it for this reason.
        let opened: @Sendable (BusFault?) -> Void
        let call: @Sendable (BusCall, Request) -> Void
        /// A program has answered `tell`.
        let told: @Sendable (String, Event.Reply) -> Void
        /// The relay has ended, and no longer hears for these programs.
        let lost: @Sendable ([String]) -> Void
    }

    /// A pending call. A program that gives two of them the same number is refused.
    private struct Caller: Hashable {
        let sender: String
        let serial: UInt32

        init(_ call: BusCall) { (sender, serial) = (call.sender, call.serial) }
    }

    private struct Pending {
        let charge: CallCharge
        let consequence: Consequence?
    }

    /// What to do once the agent has accepted a call.
    private enum Consequence {
        case register(Subjects)
        case add(Subjects)
        case remove(Subjects)
    }

    /// A call to a program.
    private enum ProgramCall: Hashable {
        case state(String)
        case posts(String)
    }

    private typealias RuleWaiter = @Sendable (NotifyBusError?, borrowing BusLink) -> Void

    /// How many calls may be on their way to the agent's thread. The others wait here, where their owners take turns.
    private static let handOverLimit = 16

    private let outlet: Outlet
    private let quotas: Quotas
    private var table: RelayTable
    /// Calls in the order in which they are handled, and what each owner may have pending.
    private var turns: CallTurns<BusCall>
    /// Calls that have begun and are not answered.
    private var pending: [Caller: Pending] = [:]
    private var handOverCount = 0
    /// Calls to programs.
    private var window = CallWindow<ProgramCall, LifecycleState>()
    /// Calls of Synchronize whose place in the stream of posts is yet to come: the bus has been asked for the first of
    /// them, and is asked once more for all others.
    private var asking: [BusCall] = []
    private var toBeAsked: [BusCall] = []
    /// Calls of Synchronize that wait until something has been read, by number.
    private var waiters: [Int: [BusCall]] = [:]
    private var lastWaiter = 0
    /// Programs that could not take their last batch, and when to try again.
    private var refusing: Set<String> = []
    private var retryTime: MonotonicTime?
    private var rules = RuleQueue<RuleWaiter, NotifyBusError>()

    init(_ outlet: Outlet, quotas: Quotas = Quotas()) {
        self.outlet = outlet
        turns = CallTurns(quotas)
        self.quotas = quotas
        table = RelayTable(room: quotas.pendingBytes)
    }

    // MARK: - The connection

    var keepsConnection: Bool { false }

    func linkIsReady(_ link: borrowing BusLink) {
        // DO_NOT_QUEUE
        link.callBus("RequestName", [.string(RelayInterface.name), .uint32(4)]) { [outlet] answer, _ in
            switch answer {
            case .failure(let fault): outlet.opened(fault)
            case .success(let values):
                // PRIMARY_OWNER, ALREADY_OWNER
                let isOwner = values.first?.uint32.map { $0 == 1 || $0 == 4 } ?? false
                outlet.opened(isOwner ? nil : .failed("Another program owns the name \(RelayInterface.name)."))
            }
        }
    }

    func linkIsLost(_ error: NotifyBusError) {
        outlet.opened(.failed("\(error)"))
        outlet.lost(table.clientNames)
        table = RelayTable(room: quotas.pendingBytes)
        turns = CallTurns(quotas)
        window = CallWindow()
        rules = RuleQueue()
        (pending, waiters, asking, toBeAsked) = ([:], [:], [], [])
        (refusing, retryTime) = ([], nil)
    }

    /// Gives up the name when nobody observes any more.
    func giveNameBack(on link: borrowing BusLink) {
        link.callBus("ReleaseName", [.string(RelayInterface.name)]) { [self] _, _ in
            // A program that has registered in the meantime sees the name go, and registers with the next relay.
            outlet.lost(table.clientNames)
        }
    }

    func handle(_ signal: BusSignal, on link: borrowing BusLink) { signal.arguments.closeDescriptors() }

    // MARK: - Calls

    func handle(_ call: BusCall, on link: borrowing BusLink) -> Bool {
        do throws(BusFault) {
            if try StandardInterfaces.answer(call, to: .relay, { .none }, on: link) { return true }
            guard call.path == RelayInterface.path, call.interface == RelayInterface.name,
                RelayInterface.methods.contains(where: { $0.member == call.member })
            else { return false }
            // Nobody hears the answer.
            let onlyAsks = [RelayInterface.Synchronize.member, AgentInterface.GetNameState.member].contains(call.member)
            if onlyAsks, !call.wantsReply {
                call.arguments.closeDescriptors()
                return true
            }
            take(call, on: link)
        } catch {
            link.refuse(call, error)
        }
        return true
    }

    private func take(_ call: BusCall, on link: borrowing BusLink) {
        let load = CallLoad(callOf: call.size)
        switch turns.take(call, load, from: call.sender, mayBegin: handOverCount < Relay.handOverLimit) {
        case .begin(let charge): begin(call, charge, on: link)
        case .waits: break
        case .refused(let refusal): refuseEarly(call, BusFault(refusal), on: link)
        case .unknown:
            Identity.findOwner(call.sender, link) { [self] owner, link in
                for (call, refusal) in turns.identify(call.sender, as: try? owner.get()) {
                    refuseEarly(call, BusFault(refusal), on: link)
                }
                takeTurns(on: link)
            }
        }
    }

    private func refuseEarly(_ call: BusCall, _ fault: BusFault, on link: borrowing BusLink) {
        call.arguments.closeDescriptors()
        link.refuse(call, fault)
    }

    private func takeTurns(on link: borrowing BusLink) {
        while handOverCount < Relay.handOverLimit, let turn = turns.next() {
            if let charge = turn.charge { begin(turn.call, charge, on: link) }
        }
    }

    private func begin(_ call: BusCall, _ charge: CallCharge, on link: borrowing BusLink) {
        do throws(BusFault) {
            guard pending[Caller(call)] == nil else {
                call.arguments.closeDescriptors()
                throw .invalidArguments("A call with this serial number is pending.")
            }
            if call.member == RelayInterface.Synchronize.member {
                call.arguments.closeDescriptors()
                pending[Caller(call)] = Pending(charge: charge, consequence: nil)
                return synchronize(call, on: link)
            }
            let request = try Request.read(call)
            let consequence: Consequence? =
                switch request {
                case .register(let statement, _): .register(statement.subjects)
                case .addNames(let names): .add(names)
                case .removeNames(let names): .remove(names)
                default: nil
                }
            pending[Caller(call)] = Pending(charge: charge, consequence: consequence)
            handOverCount += 1
            outlet.call(call, request)
        } catch {
            turns.end(charge)
            link.refuse(call, error)
        }
    }

    /// The agent has taken a call, and is about to answer it.
    func callIsTaken(on link: borrowing BusLink) {
        handOverCount -= 1
        takeTurns(on: link)
    }

    private func reply(to call: BusCall, _ values: [BusValue] = [], on link: borrowing BusLink) {
        finish(call)
        link.reply(to: call, values)
    }

    private func refuse(_ call: BusCall, _ fault: BusFault, on link: borrowing BusLink) {
        finish(call)
        link.refuse(call, fault)
    }

    private func finish(_ call: BusCall) {
        guard let entry = pending.removeValue(forKey: Caller(call)) else { return }
        turns.end(entry.charge)
    }

    /// The agent has answered a call. It counts towards its owner's quota until the program is answered.
    func answer(_ call: BusCall, _ answer: BusAnswer, process: ProcessID?, on link: borrowing BusLink) {
        let values: [BusValue]
        switch answer {
        case .failure(let fault): return refuse(call, fault, on: link)
        case .success(let all): values = all
        }
        let sender = call.sender
        switch pending[Caller(call)]?.consequence {
        case nil: reply(to: call, values, on: link)
        case .remove(let subjects):
            let (unheard, due) = table.remove(subjects, from: sender)
            release(unheard, on: link)
            endWaits(due, on: link)
            reply(to: call, values, on: link)
        case .add(let subjects):
            let (heard, added) = table.add(subjects, to: sender)
            hear(heard, for: sender, undo: { $0.remove(added, from: sender) }, on: link) { [self] error, link in
                guard let error else { return reply(to: call, values, on: link) }
                refuse(call, .failed(error.description), on: link)
            }
        case .register(let subjects):
            guard let process, let state = values.first?.string.flatMap(LifecycleState.init) else {
                return refuse(call, .failed("The connection has left the bus."), on: link)
            }
            if !table.enter(sender, of: process, in: state), let old = table.subjects(of: sender) {
                let (unheard, due) = table.remove(old.subtracting(subjects), from: sender)
                release(unheard, on: link)
                endWaits(due, on: link)
            }
            let heard = table.add(subjects, to: sender).heard
            hear(heard, for: sender, undo: { $0.stopHearing(sender) }, on: link) { [self] error, link in
                if let error {
                    let fault = BusFault.failed(error.description)
                    refuse(call, fault, on: link)
                    forget(sender, fault, on: link)
                    outlet.told(sender, .gone)
                } else {
                    reply(to: call, values, on: link)
                    pass(to: sender, on: link)
                }
            }
        }
    }

    /// A connection has left the bus.
    func forget(_ name: String, on link: borrowing BusLink) {
        forget(name, .failed("The connection has left the bus."), on: link)
    }

    private func forget(_ name: String, _ fault: BusFault, on link: borrowing BusLink) {
        let (unheard, due) = table.forget(name)
        release(unheard, on: link)
        endWaits(due, fault, on: link)
        window.forget(.state(name))
        window.forget(.posts(name))
        refusing.remove(name)
        callPrograms(on: link)
    }

    // MARK: - Rules

    /// Starts to hear these, and calls `completion` when every later post of them will be heard.
    ///
    /// - Parameter undo: undoes the change if the bus refuses them; returns what need not be heard any more, and who need
    ///   not wait any longer.
    private func hear(
        _ subjects: Subjects,
        for client: String,
        undo: @escaping @Sendable (inout RelayTable) -> (unheard: Subjects, waiters: [Int]),
        on link: borrowing BusLink,
        then completion: @escaping RuleWaiter
    ) {
        if !subjects.isEmpty {
            let number = rules.begin()
            link.hold(names: Array(subjects.names), prefixes: Array(subjects.prefixes), for: self) {
                [self] error, link in
                guard let error else { return settle(number, on: link) }
                rules.fail(client, error)
                let (unheard, due) = undo(&table)
                release(unheard, on: link)
                endWaits(due, on: link)
                // What others want as well may have been refused because of the rest.
                let isLost = error.code == .disconnected || error.code == .closed
                hearOneByOne(isLost ? Subjects() : table.heard(among: subjects), number, on: link)
            }
        }
        // Another program may have asked for the same names just before.
        if !rules.wait(completion, of: client) { completion(nil, link) }
    }

    /// Starts to hear these, each for itself, and settles the request when the bus has replied about all.
    private func hearOneByOne(_ subjects: Subjects, _ number: Int, on link: borrowing BusLink) {
        var rest = subjects
        let one: Subjects
        if let name = rest.names.popFirst() {
            one = Subjects(names: [name])
        } else if let prefix = rest.prefixes.popFirst() {
            one = Subjects(prefixes: [prefix])
        } else {
            return settle(number, on: link)
        }
        link.hold(names: Array(one.names), prefixes: Array(one.prefixes), for: self) { [self, rest] error, link in
            if let error {
                for client in table.listeners(to: one) {
                    rules.fail(client, error)
                    endWaits(table.remove(one, from: client).waiters, on: link)
                }
            }
            hearOneByOne(rest, number, on: link)
        }
    }

    private func settle(_ number: Int, on link: borrowing BusLink) {
        for (waiter, error) in rules.settle(number) { waiter(error, link) }
    }

    private func release(_ subjects: Subjects, on link: borrowing BusLink) {
        guard !subjects.isEmpty else { return }
        link.release(names: Array(subjects.names), prefixes: Array(subjects.prefixes), for: self)
    }

    // MARK: - States

    /// Puts a program into a state, and tells the agent when it is in force.
    func tell(_ name: String, _ state: LifecycleState, on link: borrowing BusLink) {
        guard table.contains(name) else { return outlet.told(name, .gone) }
        let (heard, unheard) = table.prepare(state, of: name)
        release(unheard, on: link)
        endWaits(table.takeWaiters(of: name), on: link)
        hear(heard, for: name, undo: { $0.stopHearing(name) }, on: link) { [self] error, link in
            if let error { return outlet.told(name, .failed(error.description)) }
            enqueue(.state(name), state, to: name, on: link)
        }
    }

    private func setState(_ state: LifecycleState, of name: String, on link: borrowing BusLink) {
        let message = ObserverInterface.SetState(state: state, additions: 0)
        link.call(message, ofObserver: name) { [self] answer, link in
            window.hasAnswered(.state(name))
            switch answer {
            case .failure(let fault): outlet.told(name, fault.saysGone ? .gone : .failed(fault.message))
            case .success(let values):
                values.closeDescriptors()
                table.confirm(state, of: name)
                refusing.remove(name)
                // The program may answer any number.
                let dropped = values.first?.uint64.map { $0.addingSaturated(table.droppedCount(of: name)) }
                outlet.told(name, .done(dropped: dropped, isHoldingBack: false))
                pass(to: name, on: link)
            }
            callPrograms(on: link)
        }
    }

    // MARK: - Calls to programs

    /// Makes a call when it is its turn: a bus lets a connection wait for a limited number of replies.
    private func enqueue(_ call: ProgramCall, _ state: LifecycleState, to name: String, on link: borrowing BusLink) {
        guard let process = table.process(of: name) else {
            if case .state = call { outlet.told(name, .gone) }
            return
        }
        window.enqueue(call, state, of: Owner(process, agentUser: geteuid()))
        callPrograms(on: link)
    }

    private func callPrograms(on link: borrowing BusLink) {
        while let (call, state) = window.next(now: MonotonicTime.now.nanoseconds) {
            switch call {
            case .state(let name): setState(state, of: name, on: link)
            case .posts(let name): deliver(to: name, on: link)
            }
        }
    }

    // MARK: - Posts

    func handle(post name: NotifyName, from sender: String, on link: borrowing BusLink) {
        for client in table.posted(RelayTable.Post(name, from: sender)) { pass(to: client, on: link) }
    }

    /// Passes on names that the agent has heard for a program.
    func keep(_ found: [NotifyName], for name: String, on link: borrowing BusLink) {
        table.keep(found, for: name)
        pass(to: name, on: link)
    }

    /// Passes on what is waiting, unless the program has yet to read the last batch.
    private func pass(to name: String, on link: borrowing BusLink) {
        guard table.hasBatch(for: name), !refusing.contains(name) else { return }
        enqueue(.posts(name), .foreground, to: name, on: link)
    }

    private func deliver(to name: String, on link: borrowing BusLink) {
        guard let posts = table.takeBatch(for: name, limit: ObserverInterface.DeliverPosts.limit) else {
            return window.hasAnswered(.posts(name))
        }
        let message = ObserverInterface.DeliverPosts(names: posts.map(\.name.string), senders: posts.map(\.sender))
        link.call(message, ofObserver: name) { [self] answer, link in
            window.hasAnswered(.posts(name))
            switch answer {
            case .success(let values):
                values.closeDescriptors()
                endWaits(table.batchIsRead(by: name), on: link)
                pass(to: name, on: link)
            case .failure:
                // The program has gone, or can't take anything now.
                table.batchWasRefused(by: name)
                refusing.insert(name)
                retryTime = retryTime ?? .now + 1_000
            }
            callPrograms(on: link)
        }
    }

    var deadline: MonotonicTime? {
        .earlier(retryTime, window.deadline.map { MonotonicTime(nanoseconds: $0) })
    }

    func deadlineHasPassed(_ link: borrowing BusLink) {
        if let retryTime, retryTime <= .now {
            let names = refusing
            (refusing, self.retryTime) = ([], nil)
            for name in names { pass(to: name, on: link) }
        }
        callPrograms(on: link)
    }

    // MARK: - Synchronize

    /// Replies when the caller has read everything that has been posted so far.
    private func synchronize(_ call: BusCall, on link: borrowing BusLink) {
        toBeAsked.append(call)
        if asking.isEmpty { askForPlace(on: link) }
    }

    private func askForPlace(on link: borrowing BusLink) {
        (asking, toBeAsked) = (toBeAsked, [])
        link.callBus("GetId", []) { [self] _, link in
            let calls = asking
            asking = []
            for call in calls {
                lastWaiter += 1
                if let number = table.wait(lastWaiter, for: call.sender) {
                    waiters[number, default: []].append(call)
                } else {
                    reply(to: call, on: link)
                }
            }
            if !toBeAsked.isEmpty { askForPlace(on: link) }
        }
    }

    private func endWaits(_ numbers: [Int], _ fault: BusFault? = nil, on link: borrowing BusLink) {
        for number in numbers {
            for call in waiters.removeValue(forKey: number) ?? [] {
                if let fault { refuse(call, fault, on: link) } else { reply(to: call, on: link) }
            }
        }
    }
}
