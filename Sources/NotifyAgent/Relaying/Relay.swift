// SPDX-License-Identifier: Apache-2.0

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

    /// A call that the agent has yet to answer.
    private struct Caller: Hashable {
        let sender: String
        let serial: UInt32

        init(_ call: BusCall) { (sender, serial) = (call.sender, call.serial) }
    }

    /// What to do once the agent has accepted a call.
    private enum Consequence {
        case register(Subjects)
        case add(Subjects)
        case remove(Subjects)
    }

    private let outlet: Outlet
    private var table = RelayTable()
    private var consequences: [Caller: Consequence] = [:]
    /// Calls of Synchronize that are waiting, by number.
    private var waiters: [Int: BusCall] = [:]
    private var lastNumber = 0
    /// Programs that could not take their last batch, and when to try again.
    private var refusing: Set<String> = []
    private(set) var deadline: MonotonicTime?
    /// Match rules that the bus has not confirmed yet, and who is waiting for which of them.
    private var rulesUnderWay: Set<Int> = []
    private var ruleWaiters: [(rules: Set<Int>, body: @Sendable (NotifyBusError?, borrowing BusLink) -> Void)] = []

    init(_ outlet: Outlet) { self.outlet = outlet }

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
        table = RelayTable()
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
            if call.member == RelayInterface.Synchronize.member {
                call.arguments.closeDescriptors()
                synchronize(call, on: link)
                return true
            }
            let request = try Request.read(call)
            switch request {
            case .register(let statement, _): consequences[Caller(call)] = .register(statement.subjects)
            case .addNames(let names): consequences[Caller(call)] = .add(names)
            case .removeNames(let names): consequences[Caller(call)] = .remove(names)
            default: break
            }
            outlet.call(call, request)
        } catch {
            link.refuse(call, error)
        }
        return true
    }

    /// The agent has answered a call.
    func answer(_ call: BusCall, _ answer: BusAnswer, process: ProcessID?, on link: borrowing BusLink) {
        let consequence = consequences.removeValue(forKey: Caller(call))
        let values: [BusValue]
        switch answer {
        case .failure(let fault): return link.refuse(call, fault)
        case .success(let all): values = all
        }
        switch consequence {
        case nil: link.reply(to: call, values)
        case .remove(let subjects):
            release(table.remove(subjects, from: call.sender), on: link)
            link.reply(to: call, values)
        case .add(let subjects):
            hear(table.add(subjects, to: call.sender), on: link) { error, link in
                if let error { link.refuse(call, .failed(error.description)) } else { link.reply(to: call, values) }
            }
        case .register(let subjects):
            guard let process, let state = values.first?.string.flatMap(LifecycleState.init) else {
                return link.refuse(call, .failed("The connection has left the bus."))
            }
            if !table.enter(call.sender, of: process, in: state), let old = table.subjects(of: call.sender) {
                release(table.remove(old.subtracting(subjects), from: call.sender), on: link)
            }
            hear(table.add(subjects, to: call.sender), on: link) { [self] error, link in
                if let error {
                    let fault = BusFault.failed(error.description)
                    link.refuse(call, fault)
                    let (unheard, due) = table.forget(call.sender)
                    release(unheard, on: link)
                    for number in due { waiters.removeValue(forKey: number).map { link.refuse($0, fault) } }
                    outlet.told(call.sender, .gone)
                } else {
                    link.reply(to: call, values)
                    pass(to: call.sender, on: link)
                }
            }
        }
    }

    /// A connection has left the bus.
    func forget(_ name: String, on link: borrowing BusLink) {
        let (unheard, due) = table.forget(name)
        release(unheard, on: link)
        for number in due { waiters[number] = nil }
    }

    // MARK: - Rules

    /// Starts to hear these, and calls `completion` when every later post of them will be heard.
    private func hear(
        _ subjects: Subjects,
        on link: borrowing BusLink,
        then completion: @escaping @Sendable (NotifyBusError?, borrowing BusLink) -> Void
    ) {
        if !subjects.isEmpty {
            lastNumber += 1
            let number = lastNumber
            rulesUnderWay.insert(number)
            link.hold(names: Array(subjects.names), prefixes: Array(subjects.prefixes), for: self) {
                [self] error, link in
                rulesUnderWay.remove(number)
                rulesAreSet(number, error, on: link)
            }
        }
        // Another program may have asked for the same names just before.
        if rulesUnderWay.isEmpty { completion(nil, link) } else { ruleWaiters.append((rulesUnderWay, completion)) }
    }

    private func rulesAreSet(_ number: Int, _ error: NotifyBusError?, on link: borrowing BusLink) {
        var due: [@Sendable (NotifyBusError?, borrowing BusLink) -> Void] = []
        for index in ruleWaiters.indices.reversed() where ruleWaiters[index].rules.remove(number) != nil {
            if error != nil || ruleWaiters[index].rules.isEmpty { due.append(ruleWaiters.remove(at: index).body) }
        }
        for body in due.reversed() { body(error, link) }
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
        hear(heard, on: link) { [self] error, link in
            if let error { return outlet.told(name, .failed(error.description)) }
            let message = ObserverInterface.SetState(state: state, additions: 0)
            link.call(message, ofObserver: name) { [self] answer, link in
                switch answer {
                case .failure(let fault): outlet.told(name, fault.saysGone ? .gone : .failed(fault.message))
                case .success(let values):
                    values.closeDescriptors()
                    table.confirm(state, of: name)
                    let dropped = values.first?.uint64.map { $0 + table.droppedCount(of: name) }
                    outlet.told(name, .done(dropped: dropped, isHoldingBack: false))
                    pass(to: name, on: link)
                }
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
        guard let posts = table.takeBatch(for: name, limit: ObserverInterface.DeliverPosts.limit) else { return }
        let message = ObserverInterface.DeliverPosts(names: posts.map(\.name.string), senders: posts.map(\.sender))
        link.call(message, ofObserver: name) { [self] answer, link in
            switch answer {
            case .success(let values):
                values.closeDescriptors()
                endWaits(table.batchIsRead(by: name), on: link)
                pass(to: name, on: link)
            case .failure:
                // The program has gone, or can't take anything now.
                table.batchWasRefused(by: name)
                refusing.insert(name)
                deadline = deadline ?? .now + 1_000
            }
        }
    }

    func deadlineHasPassed(_ link: borrowing BusLink) {
        deadline = nil
        let names = refusing
        refusing = []
        for name in names { pass(to: name, on: link) }
    }

    /// Replies when the caller has read everything that has been posted so far.
    private func synchronize(_ call: BusCall, on link: borrowing BusLink) {
        link.callBus("GetId", []) { [self] _, link in
            lastNumber += 1
            guard table.wait(lastNumber, for: call.sender) else { return link.reply(to: call) }
            waiters[lastNumber] = call
        }
    }

    private func endWaits(_ numbers: [Int], on link: borrowing BusLink) {
        for number in numbers {
            if let call = waiters.removeValue(forKey: number) { link.reply(to: call) }
        }
    }
}
