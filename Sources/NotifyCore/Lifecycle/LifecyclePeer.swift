// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// The observer's half of the lifecycle protocol. See Documentation/lifecycle-protocol.md.
///
/// `@unchecked Sendable`: the variables are touched only by the thread that reads; `states` has a lock of its own.
final class LifecyclePeer: BusPeer, @unchecked Sendable {
    /// How long the agent may take to answer, and how long it may stay away until the gate opens, in milliseconds.
    private static let patience: Int64 = 2_000
    /// What stands for a decider where nobody has decided anything: then a program is in the foreground.
    private static let nobody = "default"

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
    private var decider = LifecyclePeer.nobody
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
        + "arg0='\(AgentNames.agent)'"

    private func register(_ link: borrowing BusLink) {
        isRegistering = true
        deadline = .now + LifecyclePeer.patience
        let (names, prefixes) = link.registeredNames
        let socket = dup(link.descriptor)
        defer { if socket >= 0 { close(socket) } }
        var details: [(String, BusValue)] = [
            ("names", .strings(names)), ("prefixes", .strings(prefixes)), ("state", .string(state.rawValue)),
            ("previous", .string(previousName)), ("program", .string(LifecyclePeer.programName)),
            ("decider", .string(decider)), ("followsFocus", .boolean(states.followsFocus)),
        ]
        if socket >= 0 { details.append(("socket", .descriptor(socket))) }
        if let option = nameStates.registrationOption { details.append(("states", option)) }
        link.call(
            AgentNames.agent,
            path: AgentNames.agentPath,
            interface: AgentNames.agent,
            member: "Register",
            [.dictionary(details)],
            activates: true
        ) { [weak self] answer, link in self?.registered(answer, link) }
    }

    private func registered(_ answer: BusAnswer, _ link: borrowing BusLink) {
        previousName = ownName
        agent = if case .success = answer { link.answerer } else { nil }
        if let formerAgent, formerAgent != agent { mayHaveMissedPosts = true }
        formerAgent = nil
        defer { runPostponed(link) }
        guard case .success(let values) = answer, values.count >= 2, let word = values[0].string,
            let state = NotifyCenter.LifecycleState(rawValue: word)
        else {
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
        let pending = values[1].strings ?? []
        change(to: state, pending: pending, link) { link in link.observing.finishEntering(on: link.engine) }
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
        if signal.member == "Decided", signal.interface == AgentNames.agent, signal.sender == agent {
            if signal.arguments.count == 1, let text = signal.arguments[0].string { decider = text }
            return BusConnection.close(signal.arguments)
        }
        guard signal.member == "NameOwnerChanged", signal.sender == "org.freedesktop.DBus",
            signal.arguments.count == 3, signal.arguments[0].string == AgentNames.agent,
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
        decider = LifecyclePeer.nobody
        runPostponed(link)
        change(to: .foreground, pending: [], link) { link in link.observing.finishEntering(on: link.engine) }
    }

    // MARK: - Doing as the agent says

    func handle(_ call: BusCall, on link: borrowing BusLink) -> Bool {
        guard call.path == AgentNames.observerPath, call.interface == AgentNames.observer else { return false }
        guard call.sender == agent else {
            link.refuse(call, .accessDenied("Only the lifecycle agent may do this."))
            return true
        }
        switch call.member {
        case "SetState":
            guard call.arguments.count == 1,
                let state = call.arguments[0].string.flatMap(NotifyCenter.LifecycleState.init)
            else { return refuseArguments(of: call, link) }
            change(to: state, pending: [], link) { link in
                link.reply(to: call, [.uint64(UInt64(link.engine.counters.dropped.load(ordering: .relaxed)))])
            }
        case "Deliver":
            guard call.arguments.count == 1, let names = call.arguments[0].strings else {
                return refuseArguments(of: call, link)
            }
            deliver(names, link)
            link.reply(to: call)
        default:
            return false
        }
        return true
    }

    private func refuseArguments(of call: BusCall, _ link: borrowing BusLink) -> Bool {
        BusConnection.close(call.arguments)
        link.refuse(
            call,
            BusFault(name: "org.freedesktop.DBus.Error.InvalidArgs", message: "The arguments are not as documented.")
        )
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
