// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyCore

/// Calls the agent, one call after another, and waits for each reply.
struct AgentConnection {
    private final class Peer: BusPeer {
        var isReady = false
        var loss: NotifyBusError?

        var keepsConnection: Bool { false }
        func linkIsReady(_ link: BusLink) { isReady = true }
        func linkIsLost(_ error: NotifyBusError) { loss = error }
        func handle(_ call: BusCall) -> Bool { false }
        func handle(_ signal: BusSignal) { signal.arguments.closeDescriptors() }
    }

    private let settings: LifecycleSettings
    private let link: BusLink
    private let peer = Peer()

    /// Returns once the bus has accepted the connection.
    init(_ settings: LifecycleSettings) throws(CommandFailure) {
        self.settings = settings
        link = BusLink(bus: settings.common.notifyBus)
        link.peer = peer
        link.open()
        serve(until: Deadline(after: settings.timeout)) { peer.isReady || peer.loss != nil }
        if let loss = peer.loss { throw CommandFailure(loss) }
        if !peer.isReady { throw .lateBus }
    }

    /// Reads and writes until this is so, or the time is up.
    private func serve(until deadline: Deadline, _ isSo: () -> Bool) {
        while !isSo(), !deadline.hasPassed {
            let request = link.pollRequest
            var events = request.pollfd
            let time = min(deadline.milliseconds, request.deadline?.millisecondsFromNow ?? .max)
            link.proceed(poll(&events, 1, time) > 0 ? events.revents : 0)
        }
    }

    /// Calls a method of the agent, which the bus starts if necessary and possible, and returns its reply. Another user's
    /// agent is not called.
    ///
    /// If the agent goes away before it answers, the call is made again: whatever was done of it can be done twice, and
    /// another agent may be taking over. The same applies if that does not know the target yet.
    ///
    /// - Parameter target: the target of a state change, for the message of a thrown error.
    func call<Call: ProtocolCall>(
        _ call: Call,
        for target: TargetOrEveryone? = nil
    ) throws(CommandFailure) -> Call.Answer {
        let deadline = Deadline(after: settings.timeout)
        var lost: (fault: BusFault, until: Deadline)?
        while true {
            switch try ask(call, until: deadline) {
            case .success(let values):
                do throws(ArgumentError) {
                    return try Call.Answer(values)
                } catch {
                    throw .nonsense(Call.member, error, for: target)
                }
            case .failure(let fault):
                if lost == nil {
                    let mayPass = fault.saysNoTarget ? try agentIsNew(deadline) : fault.saysUnanswered
                    if mayPass { lost = (fault, Deadline(after: Takeover.limit)) }
                }
                if let until = lost?.until, !until.hasPassed, !deadline.hasPassed, fault.isOfTakeover {
                    Takeover.pause()
                    continue
                }
                let reason = fault.saysNoAgent ? lost?.fault ?? fault : fault
                throw CommandFailure(reason, to: Call.member, target: target, on: settings.common.bus)
            }
        }
    }

    /// Whether observers may still be about to register with the agent.
    private func agentIsNew(_ deadline: Deadline) throws(CommandFailure) -> Bool {
        guard case .success(let values) = try ask(AgentInterface.Status(), until: deadline) else { return false }
        return Takeover.mayLast(since: values.first?.dictionary?["since"]?.uint64)
    }

    private func ask<Call: ProtocolCall>(_ call: Call, until deadline: Deadline) throws(CommandFailure) -> BusAnswer {
        var answer: BusAnswer?
        link.callAgent(call, activates: true) { answer = $0 }
        serve(until: deadline) { answer != nil }
        if peer.loss != nil { throw .lostBus }
        guard let answer else { throw .lateAgent(on: settings.common.bus) }
        return answer
    }
}
