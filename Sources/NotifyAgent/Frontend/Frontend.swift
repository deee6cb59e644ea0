// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore

/// The agent on the bus: turns incoming calls into typed requests, and replies and effects into outgoing messages. It
/// does not interpret them.
final class Frontend {
    private let link: BusLink
    /// Calls that have not been answered yet.
    private var calls: [CallID: BusCall] = [:]
    private var lastCall: UInt64 = 0
    /// Answers calls that have come to the relay.
    var answerRelayed: ((BusCall, BusAnswer) -> Void)?

    init(_ link: BusLink) { self.link = link }

    /// Reads a call.
    ///
    /// - Parameter properties: the agent's current properties.
    /// - Returns: nil if it was for an interface that every object has, and has been answered.
    func read(
        _ call: BusCall,
        _ properties: () -> StandardInterfaces.Properties
    ) throws(BusFault) -> Request? {
        if try StandardInterfaces.answer(call, properties, on: link) { return nil }
        guard call.path == AgentInterface.path, call.interface == AgentInterface.name || call.interface.isEmpty else {
            call.arguments.closeDescriptors()
            throw .unknownMethod(call)
        }
        return try Request.read(call)
    }

    // MARK: - Replies

    /// Notes a call that is answered later.
    func keep(_ call: BusCall) -> CallID {
        lastCall += 1
        let id = CallID(lastCall)
        calls[id] = call.withoutArguments
        return id
    }

    func answer(_ id: CallID, _ answer: Effect.Answer) {
        guard let call = calls.removeValue(forKey: id) else { return }
        let arguments: [BusValue] =
            switch answer {
            case .done: Acknowledgement().arguments
            case .registered(let state, let pending, let isComplete):
                AgentInterface.Register.Answer(
                    state: state,
                    pending: pending.map(\.string),
                    isComplete: isComplete
                ).arguments
            case .connections(let count): AgentInterface.ConnectionCount(connections: UInt32(count)).arguments
            case .stamp(let stamp): AgentInterface.SetNameState.Answer(stamp: stamp).arguments
            case .value(let value): AgentInterface.GetNameState.Answer(value: value).arguments
            }
        reply(to: call, arguments)
    }

    func refuse(_ id: CallID, _ refusal: Refusal) {
        guard let call = calls.removeValue(forKey: id) else { return }
        refuse(call, BusFault(refusal))
    }

    /// Refuses whatever is to be answered later.
    func refuseAll(_ fault: BusFault) {
        let unanswered = calls
        calls = [:]
        for (_, call) in unanswered.sorted(by: { $0.key.number < $1.key.number }) { refuse(call, fault) }
    }

    func reply(to call: BusCall, _ arguments: [BusValue] = []) {
        if call.isRelayed { answerRelayed?(call, .success(arguments)) } else { link.reply(to: call, arguments) }
    }

    func refuse(_ call: BusCall, _ fault: BusFault) {
        if call.isRelayed { answerRelayed?(call, .failure(fault)) } else { link.refuse(call, fault) }
    }

    // MARK: - To observers

    /// Informs an observer of its state.
    ///
    /// - Parameter completion: receives the reply.
    func tell(
        _ name: String,
        _ message: ObserverInterface.SetState,
        then completion: @escaping (Event.Reply) -> Void
    ) {
        link.call(message, ofObserver: name) { [link] answer in
            switch answer {
            case .success(let values):
                let dropped = values.first?.uint64
                values.closeDescriptors()
                completion(.done(dropped: dropped, isHoldingBack: link.isHoldingPostsBack))
            case .failure(let fault) where fault.name == ObserverInterface.namesAdded: completion(.namesAdded)
            case .failure(let fault): completion(fault.saysGone ? .gone : .failed(fault.message))
            }
        }
    }

    /// Delivers names. The last call has fewer than the limit, possibly none, so that the observer knows it has
    /// everything.
    ///
    /// - Parameter completion: called once the observer has read them, if there are any.
    func deliver(
        _ names: [NotifyName],
        to name: String,
        then completion: @escaping () -> Void
    ) {
        var rest = names[...]
        while rest.count >= ObserverInterface.Deliver.limit {
            let message = ObserverInterface.Deliver(names: rest.prefix(ObserverInterface.Deliver.limit).map(\.string))
            send(message.arguments, ObserverInterface.Deliver.member, to: name)
            rest = rest.dropFirst(ObserverInterface.Deliver.limit)
        }
        let last = ObserverInterface.Deliver(names: rest.map(\.string))
        if names.isEmpty { return send(last.arguments, ObserverInterface.Deliver.member, to: name) }
        link.call(last, ofObserver: name) { answer in
            // One that has gone is forgotten along with everything that it was to receive.
            if case .success(let values) = answer { values.closeDescriptors() }
            completion()
        }
    }

    /// Puts a mark into the stream of an observer, for the agent itself.
    func mark(_ name: String, _ number: UInt64) {
        let message = ObserverInterface.Mark(number: number)
        send(message.arguments, ObserverInterface.Mark.member, to: name)
    }

    private func send(_ arguments: [BusValue], _ member: String, to name: String) {
        link.tell(
            name,
            path: ObserverInterface.path,
            interface: ObserverInterface.name,
            member: member,
            arguments
        )
    }

    // MARK: - To everyone

    func announce(_ change: Effect.StateChange) {
        link.emit(
            AgentInterface.StateChanged(
                connection: change.name,
                process: UInt32(change.process.pid),
                application: change.application,
                from: change.from.rawValue,
                to: change.to.rawValue
            )
        )
    }
}

extension BusCall {
    /// Whether it has come to the relay: no other connection takes a call of its interface.
    var isRelayed: Bool { interface == RelayInterface.name }
}

extension BusLink {
    /// Calls an observer; `completion` receives the reply, on this thread.
    func call<Call: ProtocolCall>(
        _ call: Call,
        ofObserver name: String,
        then completion: @escaping (BusAnswer) -> Void
    ) {
        self.call(
            name,
            path: ObserverInterface.path,
            interface: ObserverInterface.name,
            member: Call.member,
            call.arguments,
            then: completion
        )
    }
}
