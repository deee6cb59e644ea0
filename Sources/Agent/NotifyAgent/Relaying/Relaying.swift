// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore
import NotifyNames

/// The relay as the agent sees it. It is open while a program may need it, on a connection of its own.
///
/// Requests of one to the other are carried out soon, and not at once: neither is called in the middle of something.
final class Relaying {
    /// How long the relay stays open when it is not needed, in nanoseconds.
    private static let lingering: Int64 = 10_000_000_000

    private enum Phase {
        case closed
        /// The relay is connecting, and these calls wait for it.
        case opening([BusCall])
        case open
        /// The relay is giving up its name.
        case closing
        /// The relay keeps its name until that of the next agent takes it over.
        case retired
    }

    /// How long a relay that has retired waits for that, in milliseconds.
    private static let patience: Int64 = 5_000

    private let bus: NotifyCenter.Bus
    private let link: BusLink
    private let loop: EventLoop
    private let rules: RelayRules
    private let quotas: Quotas
    weak var agent: Agent?
    private var phase = Phase.closed
    private var relay: (relay: Relay, link: BusLink)?
    /// The connections that have registered with the relay.
    private var names: Set<String> = []
    /// Counts the relays: one that has ended may report that when there is already another.
    private var generation = 0
    /// When the relay ends unless a program registers, in nanoseconds of the monotonic clock.
    private(set) var restTime: Int64 = 0
    private var whenClosed: (() -> Void)?
    /// The additions to what the agent hears for programs behind the relay, when the relay had read all earlier posts.
    var coveredAdditions = 0
    /// Programs that have yet to tell the relay all that they observe.
    var telling: Set<String> = []

    /// - Parameter link: the agent's.
    init(bus: NotifyCenter.Bus, _ link: BusLink, on loop: EventLoop, rules: RelayRules, quotas: Quotas) {
        (self.bus, self.link, self.loop) = (bus, link, loop)
        self.rules = rules
        self.quotas = quotas
    }

    // MARK: - Opening and closing

    var hasRelay: Bool { relay != nil }

    /// Opens the relay for programs that have registered with one that has ended, and see the next one come. The bus can start
    /// what asks for it, too, but that takes longer, and may fail.
    func openAgain() {
        if case .closed = phase, rules.isOpen { start(for: []) }
    }

    func open(for call: BusCall) {
        guard rules.isOpen else {
            return link.refuse(call, .accessDenied("The agent's configuration says 'relay = none'."))
        }
        switch phase {
        case .open:
            // The program that asks for it has yet to register.
            agent?.alarms.set(.relaying, at: beginRest())
            link.reply(to: call)
        case .opening(let calls): phase = .opening(calls + [call])
        case .closing:
            closeRelay()
            start(for: [call])
        case .retired: link.refuse(call, .replaced)
        case .closed: start(for: [call])
        }
    }

    private func start(for calls: [BusCall]) {
        generation += 1
        let generation = generation
        let link = BusLink(bus: bus)
        let relay = Relay(
            link,
            Relay.Reporter(
                opened: { [weak self] fault in self?.soon(generation) { $0.opened(fault) } },
                call: { [weak self] call, request in
                    self?.soon { relaying in
                        relaying.agent?.handleRelayed(call, request)
                        if relaying.generation == generation { relaying.relayPerform { $0.callIsTaken() } }
                    }
                },
                told: { [weak self] name, reply in self?.soon { $0.agent?.wasTold(name, reply) } },
                hears: { [weak self] name in self?.soon { $0.agent?.relayHears(name) } },
                lost: { [weak self] names, isReplaced in
                    self?.soon(generation) { $0.agent?.relayHasLost(names, isReplaced: isReplaced) }
                }
            ),
            quotas: quotas
        )
        link.peer = relay
        self.relay = (relay, link)
        phase = .opening(calls)
        loop.add(relay.receiver)
        link.open()
    }

    /// - Parameter generation: only if this relay is still the current one.
    private func soon(_ generation: Int? = nil, _ work: @escaping (Relaying) -> Void) {
        loop.soon { [weak self] in
            guard let self, generation ?? self.generation == self.generation else { return }
            work(self)
        }
    }

    private func opened(_ fault: BusFault?) {
        guard case .opening(let calls) = phase else { return }
        if let fault {
            close()
            for call in calls { link.refuse(call, fault) }
        } else {
            phase = .open
            agent?.alarms.set(.relaying, at: beginRest())
            for call in calls { link.reply(to: call) }
        }
    }

    private func beginRest() -> Int64 {
        restTime = MonotonicTime.now.nanoseconds + Relaying.lingering
        return restTime
    }

    /// Ends the relay if no program has registered until now.
    func restIfNobodyNeedsIt() {
        guard case .open = phase, names.isEmpty, restTime <= MonotonicTime.now.nanoseconds else { return }
        phase = .closing
        relayPerform { $0.giveNameBack() }
    }

    func close() {
        phase = .closed
        names = []
        closeRelay()
        whenClosed.take()?()
    }

    /// The relay serves no program any more, but keeps its name for that of the next agent: where the bus can't start one, a
    /// program that found none would take itself for live, and hear nothing.
    func retire() {
        guard case .open = phase else { return close() }
        phase = .retired
        names = []
        relayPerform { $0.retire() }
    }

    /// - Parameter completion: called when the relay that has retired is closed, or at once if there is none.
    func awaitSuccessor(then completion: @escaping () -> Void) {
        guard case .retired = phase else { return completion() }
        whenClosed = completion
        _ = loop.after(Relaying.patience) { [weak self] in self?.close() }
    }

    private func closeRelay() {
        guard let old = relay else { return }
        relay = nil
        loop.remove(old.relay.receiver)
        loop.soon { old.link.end() }
    }

    // MARK: - What programs in sandboxes observe

    /// Why an application may not observe something; nil if it may.
    func fault(in subjects: Subjects, of application: String) -> BusFault? {
        rules.refusal(of: subjects, to: application).map { .accessDenied($0) }
    }

    /// A connection has ended.
    ///
    /// - Returns: whether the relay is not needed any more; then `restTime` is set.
    func forget(_ name: String) -> Bool {
        guard names.remove(name) != nil else { return false }
        relayPerform { $0.forget(name) }
        guard names.isEmpty else { return false }
        _ = beginRest()
        return true
    }

    /// The names of the posts that programs which observe prefixes are not known to have read.
    var unreadNames: [String: [NotifyName]] { relay?.relay.table.unreadNames() ?? [:] }

    // MARK: - What the relay is to do

    /// Calls `completion` when everything that has been posted so far is queued for its programs, if there is a relay.
    func readUp(then completion: @escaping () -> Void) {
        guard let relay = relay?.relay else { return completion() }
        loop.soon { [weak self] in
            // It may have ended meanwhile.
            if self?.relay?.relay === relay { relay.readUp(then: completion) } else { completion() }
        }
    }

    /// - Parameter process: the caller's process, if the caller is registered.
    func answer(_ call: BusCall, _ answer: BusAnswer, process: ProcessID?) {
        if process != nil { names.insert(call.sender) }
        relayPerform { $0.answer(call, answer, process: process) }
    }

    func tell(_ name: String, _ state: LifecycleState) {
        // If it has ended, the client registers with the next one.
        relayPerform({ $0.tell(name, state) }, otherwise: { $0.agent?.wasTold(name, .gone) })
    }

    func keep(_ found: [NotifyName], for name: String) {
        relayPerform { $0.keep(found, for: name) }
    }

    func emit(_ message: AgentInterface.Decided, to name: String) { relayPerform { $0.emit(message, to: name) } }

    private func relayPerform(
        _ work: @escaping (Relay) -> Void,
        otherwise: @escaping (Relaying) -> Void = { _ in }
    ) {
        let relay = relay?.relay
        loop.soon { [weak self] in
            guard let self else { return }
            if let relay, self.relay?.relay === relay { work(relay) } else { otherwise(self) }
        }
    }
}
