// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyCore

/// Calls the agent, one call after another, and waits for each reply. For the main thread.
struct AgentConnection {
    private enum Event {
        case ready
        case lost(NotifyBusError)
        case answer(number: Int, BusAnswer)
    }

    /// The half that belongs to the reading thread.
    private final class Peer: BusPeer {
        let mailbox: Mailbox<Event>

        init(_ mailbox: Mailbox<Event>) {
            self.mailbox = mailbox
        }

        var keepsConnection: Bool { false }
        func linkIsReady(_ link: BusLink) { mailbox.put(.ready) }
        func linkIsLost(_ error: NotifyBusError) { mailbox.put(.lost(error)) }
        func handle(_ call: BusCall) -> Bool { false }
        func handle(_ signal: BusSignal) { signal.arguments.closeDescriptors() }
    }

    private let settings: LifecycleSettings
    private let mailbox: Mailbox<Event>
    private let center: NotifyCenter
    private var calls = 0

    /// Returns once the bus has accepted the connection.
    init(_ settings: LifecycleSettings) throws(CommandFailure) {
        self.settings = settings
        mailbox = try Mailbox()
        center = NotifyCenter(bus: settings.common.notifyBus, peer: Peer(mailbox))
        do throws(NotifyBusError) {
            try center.open()
        } catch {
            throw CommandFailure(error)
        }
        switch mailbox.next(until: Deadline(after: settings.timeout)) {
        case .lost(let error): throw CommandFailure(error)
        case nil: throw CommandFailure("the bus did not accept the connection in time", code: .timedOut)
        case .ready, .answer: break
        }
    }

    /// How long an agent that takes over from another may need until observers have registered with it. Those count an
    /// agent that does not answer for that long as absent.
    private static let takeover = Duration.seconds(2)

    /// Calls a method of the agent, which the bus starts if necessary and possible, and returns its reply.
    ///
    /// If the agent goes away before it answers, the call is made again: whatever was done of it can be done twice, and
    /// another agent may be taking over. The same applies if that does not know the target yet.
    ///
    /// - Parameter target: the target of a state change, for the message of a thrown error.
    mutating func call<Call: ProtocolCall>(
        _ call: Call,
        for target: Whom? = nil
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
                    if mayPass { lost = (fault, Deadline(after: AgentConnection.takeover)) }
                }
                if let until = lost?.until, !until.hasPassed, !deadline.hasPassed, fault.isOfTakeover {
                    poll(nil, 0, 20)
                    continue
                }
                let reason = fault.saysNoAgent ? lost?.fault ?? fault : fault
                throw CommandFailure(reason, to: Call.member, target: target, on: settings.common.bus)
            }
        }
    }

    /// Whether observers may still be about to register with the agent.
    private mutating func agentIsNew(_ deadline: Deadline) throws(CommandFailure) -> Bool {
        guard case .success(let values) = try ask(AgentInterface.Status(), until: deadline),
            let since = values.first?.dictionary?["since"]?.uint64
        else { return false }
        let age = Clock.timeOfDay / 1_000_000_000 - Int64(clamping: since)
        return (0...AgentConnection.takeover.components.seconds).contains(age)
    }

    private mutating func ask<Call: ProtocolCall>(
        _ call: Call,
        until deadline: Deadline
    ) throws(CommandFailure) -> BusAnswer {
        calls += 1
        let (number, mailbox) = (calls, mailbox)
        center.perform { link in
            link.call(
                AgentInterface.name,
                path: AgentInterface.path,
                interface: AgentInterface.name,
                member: Call.member,
                call.arguments,
                activates: true
            ) { answer in
                mailbox.put(.answer(number: number, answer))
            }
        }
        while let event = mailbox.next(until: deadline) {
            if case .lost = event { throw .lostBus }
            if case .answer(number, let answer) = event { return answer }
        }
        throw .lateAgent(on: settings.common.bus)
    }
}
