// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// The observer's half of the lifecycle protocol. See Documentation/lifecycle-protocol.md.
///
/// `@unchecked Sendable`: the variables are touched only by the thread that reads; `states` has a lock of its own.
final class LifecyclePeer: BusPeer, @unchecked Sendable {
    /// How long the agent may take to answer, and how long it may stay away until the gate opens, in milliseconds.
    private static let patience: Int64 = 2_000

    /// The state that others see, and who wants to hear of changes.
    let states = LifecycleStates()
    /// The states of names that this program has set.
    let nameStates = NameStates()
    private(set) var deadline: MonotonicTime?
    /// The agent's unique name, while there is one and it knows this connection.
    var agent: String?
    /// The unique name of this connection before the bus or the agent closed it.
    private var previousName = ""
    /// Who decided the state, in the agent's words. An agent that comes later is told.
    private var decider = AgentInterface.nobody
    private var ownName = ""
    /// Whether an agent died that may have known of posts made while the program was suspended.
    private var mayHaveMissedPosts = false
    /// The agent that knew this connection when it was lost. It may have parked the program; another one knows nothing
    /// of what was posted then.
    private var formerAgent: String?
    /// Names that were delivered for that reason, and are not to be delivered again when an agent knows of them.
    private var deliveredUnasked: Set<String> = []
    /// What is to be done once the agent knows this connection, or turns out not to be there.
    var postponed: [@Sendable (borrowing BusLink) -> Void] = []
    var postponedFailures: [@Sendable (NotifyBusError) -> Void] = []
    var isRegistering = true

    private var state: NotifyCenter.LifecycleState { states.current }

    var keepsConnection: Bool { states.isFollowed || state == .suspended }

    // MARK: - Finding the agent

    func linkIsReady(_ link: borrowing BusLink) {
        ownName = link.uniqueName
        link.observing.beginEntering()
        link.callBus("AddMatch", [.string(LifecyclePeer.ownerRule)])
        register(link)
    }

    private static let ownerRule =
        "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',"
        + "arg0='\(AgentInterface.name)'"

    private func register(_ link: borrowing BusLink) {
        isRegistering = true
        deadline = .now + LifecyclePeer.patience
        let (names, prefixes) = link.registeredNames
        let socket = dup(link.descriptor)
        defer { if socket >= 0 { close(socket) } }
        var registration = AgentInterface.Register()
        (registration.names, registration.prefixes) = (names, prefixes)
        registration.state = state
        registration.previous = previousName
        registration.program = LifecyclePeer.programName
        registration.decider = decider
        registration.followsDesktop = states.followsDesktop
        registration.socket = socket >= 0 ? socket : nil
        registration.states = nameStates.entriesToRegister
        link.call(registration, activates: true) { [weak self] answer, link in self?.registered(answer, link) }
    }

    private func registered(_ answer: Result<AgentInterface.Register.Answer, BusFault>, _ link: borrowing BusLink) {
        previousName = ownName
        agent = if case .success = answer { link.answerer } else { nil }
        if let formerAgent, formerAgent != agent { mayHaveMissedPosts = true }
        formerAgent = nil
        defer { runPostponed(link) }
        guard case .success(let welcome) = answer else {
            // No agent: as long as one may come back, the state stays.
            if state == .foreground {
                deadline = nil
                change(to: .foreground, pending: [], link) { link in link.observing.finishEntering(on: link.engine) }
            } else {
                enterKeepingState(link)
            }
            return
        }
        deadline = nil
        change(to: welcome.state, pending: welcome.pending, link) { link in
            link.observing.finishEntering(on: link.engine)
        }
    }

    /// Confirms registrations in the state that the program was in.
    private func enterKeepingState(_ link: borrowing BusLink) {
        link.observing.closeGate(on: link.engine) { link in link.observing.finishEntering(on: link.engine) }
    }

    func linkIsLost(_ error: NotifyBusError) {
        formerAgent = agent ?? formerAgent
        agent = nil
        isRegistering = true
        let failures = postponedFailures
        postponed = []
        postponedFailures = []
        for fail in failures { fail(error) }
        deadline = nil
        if state == .suspended { mayHaveMissedPosts = true }
    }

    func handle(_ signal: BusSignal, on link: borrowing BusLink) {
        typealias Decided = AgentInterface.Decided
        if signal.member == Decided.member, signal.interface == AgentInterface.name, signal.sender == agent {
            if let decided = try? Decided(signal.arguments) { decider = decided.decider }
            return
        }
        guard signal.member == "NameOwnerChanged", signal.sender == "org.freedesktop.DBus",
            signal.arguments.count == 3, signal.arguments[0].string == AgentInterface.name,
            let owner = signal.arguments[2].string
        else { return BusConnection.close(signal.arguments) }
        if state == .suspended { mayHaveMissedPosts = true }
        if owner.isEmpty {
            agent = nil
            if state != .foreground { deadline = .now + LifecyclePeer.patience }
        } else if owner != agent {
            register(link)
        }
    }

    /// The agent has not answered, or has not come back.
    func deadlineHasPassed(_ link: borrowing BusLink) {
        deadline = nil
        agent = nil
        decider = AgentInterface.nobody
        runPostponed(link)
        change(to: .foreground, pending: [], link) { link in link.observing.finishEntering(on: link.engine) }
    }

    // MARK: - Doing as the agent says

    func handle(_ call: BusCall, on link: borrowing BusLink) -> Bool {
        guard call.path == ObserverInterface.path, call.interface == ObserverInterface.name else { return false }
        guard call.sender == agent else {
            call.arguments.closeDescriptors()
            link.refuse(call, .accessDenied("Only the lifecycle agent may do this."))
            return true
        }
        do throws(ArgumentError) {
            switch call.member {
            case ObserverInterface.SetState.member:
                let state = try ObserverInterface.SetState(call.arguments).state
                change(to: state, pending: [], link) { link in
                    let dropped = UInt64(link.engine.counters.dropped.load(ordering: .relaxed))
                    link.reply(to: call, ObserverInterface.SetState.Answer(dropped: dropped).arguments)
                }
            case ObserverInterface.Deliver.member:
                deliver(try ObserverInterface.Deliver(call.arguments).names, link)
                link.reply(to: call)
            default:
                return false
            }
        } catch {
            link.refuse(call, error.fault(for: call.member))
        }
        return true
    }

    private func change(
        to state: NotifyCenter.LifecycleState,
        pending: [String],
        _ link: borrowing BusLink,
        then completion: @escaping @Sendable (borrowing BusLink) -> Void
    ) {
        let states = states
        switch state {
        case .foreground:
            deliver(pending, link)
            if mayHaveMissedPosts {
                mayHaveMissedPosts = false
                let names = Set(link.registeredNames.names).subtracting(pending)
                deliver(Array(names), link)
                deliveredUnasked = names
            }
            link.observing.openGate(on: link.engine) { link in
                states.set(.foreground)
                completion(link)
            }
        case .background, .suspended:
            deliveredUnasked = []
            if state == .background {
                mayHaveMissedPosts = false
                link.observing.forgetReplay()
            }
            link.observing.closeGate(on: link.engine) { link in
                states.set(state)
                completion(link)
            }
        }
    }

    private func deliver(_ names: [String], _ link: borrowing BusLink) {
        let fresh = names.filter { deliveredUnasked.remove($0) == nil }
        link.observing.replay(fresh.compactMap { try? NotifyName($0) })
    }

    private func runPostponed(_ link: borrowing BusLink) {
        isRegistering = false
        let all = postponed
        postponed = []
        postponedFailures = []
        for action in all { action(link) }
    }

    private static let programName: String = {
        var buffer = [UInt8](repeating: 0, count: 64)
        let file = open("/proc/self/comm", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return "" }
        defer { close(file) }
        let count = read(file, &buffer, buffer.count)
        return String(decoding: buffer.prefix(max(0, count)).prefix { $0 != 10 }, as: UTF8.self)
    }()
}
