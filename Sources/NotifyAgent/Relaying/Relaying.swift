// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore
import NotifyNames

/// Work for the agent's thread.
typealias AgentWork = @Sendable (Agent, borrowing BusLink) -> Void

/// The relay as the agent sees it. It is open while somebody may need it, on a connection with its own threads.
///
/// `@unchecked Sendable`, like everything that belongs to the agent: only the reading thread touches it.
final class Relaying: @unchecked Sendable {
    /// How long the relay stays open when nobody needs it, in nanoseconds.
    private static let lingering: Int64 = 10_000_000_000

    private enum Phase {
        case closed
        /// The relay is connecting, and these calls wait for it.
        case opening([BusCall])
        case open
        /// The relay is giving up its name.
        case closing
    }

    private let bus: NotifyCenter.Bus
    private let rules: RelayRules?
    private let quotas: Quotas
    private let thread: DeferredCall<AgentWork>
    private var phase = Phase.closed
    private var center: NotifyCenter?
    private var relay: Relay?
    /// The connections that have registered with the relay.
    private var names: Set<String> = []
    /// Counts the relays: one that has ended may report that when there is already another.
    private var generation = 0
    /// When the relay ends unless somebody registers, in nanoseconds of the monotonic clock.
    private(set) var restTime: Int64 = 0

    init(bus: NotifyCenter.Bus, rules: RelayRules?, quotas: Quotas, thread: DeferredCall<AgentWork>) {
        self.bus = bus
        self.rules = rules
        self.quotas = quotas
        self.thread = thread
    }

    // MARK: - Opening and closing

    func open(for call: BusCall, on link: borrowing BusLink) {
        guard rules != nil else {
            return link.refuse(call, .accessDenied("The agent's configuration says 'relay = none'."))
        }
        switch phase {
        case .open: link.reply(to: call)
        case .opening(let calls): phase = .opening(calls + [call])
        case .closing:
            relay = nil
            center?.close()
            center = nil
            start(for: call, on: link)
        case .closed: start(for: call, on: link)
        }
    }

    private func start(for call: BusCall, on link: borrowing BusLink) {
        generation += 1
        let generation = generation
        let relay = Relay(
            Relay.Outlet(
                opened: { [thread] fault in
                    thread { agent, link in
                        guard agent.relaying.generation == generation else { return }
                        agent.relaying.opened(fault, agent, link)
                    }
                },
                call: { [thread] call, request in
                    thread { agent, link in
                        agent.handleRelayed(call, request, on: link)
                        guard agent.relaying.generation == generation else { return }
                        agent.relaying.relayPerform { relay, link in relay.callIsTaken(on: link) }
                    }
                },
                told: { [thread] name, reply in thread { agent, link in agent.wasTold(name, reply, on: link) } },
                lost: { [thread] names in
                    thread { agent, link in
                        guard agent.relaying.generation == generation else { return }
                        agent.relayHasLost(names, on: link)
                    }
                }
            ),
            quotas: quotas
        )
        let center = NotifyCenter(bus: bus, peer: relay)
        do throws(NotifyBusError) {
            try center.open()
        } catch {
            return link.refuse(call, .failed("The relay can't start: \(error)"))
        }
        (self.relay, self.center) = (relay, center)
        phase = .opening([call])
    }

    private func opened(_ fault: BusFault?, _ agent: Agent, _ link: borrowing BusLink) {
        guard case .opening(let calls) = phase else { return }
        if let fault {
            close()
            for call in calls { link.refuse(call, fault) }
        } else {
            phase = .open
            agent.alarms.set(.relaying, at: beginRest())
            for call in calls { link.reply(to: call) }
        }
    }

    private func beginRest() -> Int64 {
        restTime = MonotonicTime.now.nanoseconds + Relaying.lingering
        return restTime
    }

    /// Ends the relay if nobody has registered until now.
    func restIfNobodyNeedsIt() {
        guard case .open = phase, names.isEmpty, restTime <= MonotonicTime.now.nanoseconds else { return }
        phase = .closing
        relayPerform { relay, link in relay.giveNameBack(on: link) }
    }

    func close() {
        phase = .closed
        relay = nil
        names = []
        center?.close()
        center = nil
    }

    // MARK: - What programs in sandboxes observe

    /// Why an application may not observe something; nil if it may.
    func fault(in subjects: Subjects, of application: String) -> BusFault? {
        guard let text = rules?.forbidden(subjects, to: application) else { return nil }
        return .accessDenied("The agent's configuration does not let \(application) hear '\(text)'.")
    }

    /// A connection has ended.
    ///
    /// - Returns: whether nobody needs the relay any more; then `restTime` is set.
    func forget(_ name: String) -> Bool {
        guard names.remove(name) != nil else { return false }
        relayPerform { relay, link in relay.forget(name, on: link) }
        guard names.isEmpty else { return false }
        _ = beginRest()
        return true
    }

    // MARK: - What the relay is to do

    /// - Parameter process: the caller's process, if the caller is registered.
    func answer(_ call: BusCall, _ answer: BusAnswer, process: ProcessID?) {
        if process != nil { names.insert(call.sender) }
        relayPerform { relay, link in relay.answer(call, answer, process: process, on: link) }
    }

    func tell(_ name: String, _ state: LifecycleState) {
        relayPerform { relay, link in relay.tell(name, state, on: link) }
    }

    func keep(_ found: [NotifyName], for name: String) {
        relayPerform { relay, link in relay.keep(found, for: name, on: link) }
    }

    func emit(_ message: AgentInterface.Decided, to name: String) {
        relayPerform { _, link in link.emit(message, to: name, from: .relay) }
    }

    private func relayPerform(_ work: @escaping @Sendable (Relay, borrowing BusLink) -> Void) {
        guard let relay, let center else { return }
        center.perform { link in work(relay, link) }
    }
}

// How calls to the relay reach the coordinator.
extension Agent {
    func handleRelayed(_ call: BusCall, _ request: Request, on link: borrowing BusLink) {
        let sender = call.sender
        do throws(BusFault) {
            switch request {
            case .register(let statement, let socket): try register(call, statement, socket, on: link)
            case .addNames(let names):
                if let fault = relaying.fault(in: names, of: application(of: sender)) { throw fault }
                handle(.addNames(face.keep(call), from: sender, names), on: link)
            case .removeNames(let names): handle(.removeNames(face.keep(call), from: sender, names), on: link)
            case .report(let state): handle(.report(face.keep(call), from: sender, state), on: link)
            case .followDesktop(let follows): handle(.followDesktop(face.keep(call), from: sender, follows), on: link)
            case .getNameState(let name): answerState(of: name, call, on: link)
            case .setNameState(let name, let value):
                guard let id = coordinator.id(of: sender), let user = coordinator.user(of: sender),
                    coordinator.subjects(of: id)?.names.contains(name) == true
                else {
                    let refusal =
                        "A program in a sandbox can set the state of a name that it observes, and of no other."
                    throw BusFault(name: AgentInterface.ErrorName.notObserved, message: refusal)
                }
                handle(.setNameState(face.keep(call), by: Caller(user: user), name, value), on: link)
            case .setState, .release, .setForeground, .list, .status, .openRelay: throw .unknownMethod(call)
            }
        } catch {
            face.refuse(call, error, on: link)
        }
    }

    private func application(of name: String) -> String {
        coordinator.id(of: name).flatMap(coordinator.process).flatMap(coordinator.facts)?.application ?? ""
    }

    func wasTold(_ name: String, _ reply: Event.Reply, on link: borrowing BusLink) {
        if let id = coordinator.id(of: name) { handle(.told(id, reply), on: link) }
    }

    /// Hands names to the relay, which keeps them until the program has read them.
    func deliverRelayed(_ names: [NotifyName], to id: ConnectionID, on link: borrowing BusLink) {
        guard let name = coordinator.name(of: id), !names.isEmpty else { return }
        relaying.keep(names, for: name)
        handle(.delivered(id), on: link)
    }

    /// The relay has ended, so nobody hears for these connections until they register with the next one.
    func relayHasLost(_ names: [String], on link: borrowing BusLink) {
        relaying.close()
        for name in names {
            if let id = coordinator.id(of: name) { handle(.connectionEnded(id), on: link) }
        }
    }
}
