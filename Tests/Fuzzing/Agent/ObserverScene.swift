// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import NotifyNames

/// A program that observes, posts and asks, with a bus and an agent that say what they like.
struct ObserverScene {
    static func run(_ choices: Choices) {
        let bus = HostileBus(path: Room.path + "/bus")
        let stream = Stream(choices)
        let center = NotifyCenter(bus: .address(bus.address), waitsForBus: true)
        bus.reply = { [unowned bus] call, client in reply(call, client, bus, &stream.choices) }
        var observations: [NotifyCenter.Observation] = []
        var steps: [String] = []
        observe(center, ["com.example.a"], &observations)
        bus.work(until: { bus.clients.contains(where: \.hasName) }, "the center's start")
        bus.settle("the beginning")
        while !stream.choices.isOver {
            if !bus.clients.contains(where: \.isOpen) {
                // It comes back by itself if there is anything to hear, though not at once: once is enough.
                guard bus.clients.count < 2 else { break }
                observe(center, ["com.example.a"], &observations)
                bus.work(until: { bus.clients.contains { $0.isOpen && $0.hasName } }, "the center's return")
            }
            steps.append(step(center, bus, &stream.choices, &observations))
            bus.settle(steps.suffix(8).joined(separator: "; "))
        }
        bus.hangUp()
        try? center.close(timeout: nil)
        bus.end()
    }

    private final class Stream {
        var choices: Choices
        init(_ choices: Choices) { self.choices = choices }
    }

    private static let agent = ":1.5"

    private static func observe(
        _ center: NotifyCenter,
        _ names: [NotifyName],
        _ observations: inout [NotifyCenter.Observation]
    ) {
        let observation = try? center.startObserving(.names(names), waitsForBus: true, whenLive: { _ in })
        if let observation { observations.append(observation) }
        if observations.count > 4 { observations.removeFirst() }
    }

    private static func step(
        _ center: NotifyCenter,
        _ bus: HostileBus,
        _ choices: inout Choices,
        _ observations: inout [NotifyCenter.Observation]
    ) -> String {
        let open = bus.clients.filter(\.isOpen)
        guard !open.isEmpty else { return "" }
        let client = choices.pick(open)
        let sender = choices.pick([agent, agent, ":1.6", HostileBus.busName])
        switch choices.number(below: 8) {
        case 0:
            let names = choices.names()
            if names.isEmpty { observations.removeAll() } else { observe(center, names, &observations) }
            return "observes \(names)"
        case 1:
            try? center.lifecycle.setFollowsDesktop(!center.lifecycle.followsDesktop) { _ in }
            return "follows"
        case 2, 3:
            let (member, signature) = choices.pick([
                ("SetState", "su"), ("Deliver", "as"), ("DeliverPosts", "asas"), ("Mark", "t"),
                ("KeepStates", "a(stt)"),
                ("Other", ""),
            ])
            var call = bus.message(.call, from: sender)
            (call.path, call.interface, call.member) = (ObserverInterface.path, ObserverInterface.name, member)
            call.wantsReply = !choices.once(in: 4)
            call.arguments = choices.values(of: choices.once(in: 6) ? choices.signature() : signature)
            if member == "SetState", call.arguments.count == 2 {
                call.arguments[0] = .string(choices.state().rawValue)
                if choices.once(in: 2) { call.arguments[1] = .uint32(UInt32(choices.number(below: 3))) }
            }
            bus.send(call, to: client)
            return "\(sender) calls \(member)"
        case 4:
            let owners = choices.pick([["", agent], [agent, ""], [agent, ":1.6"]])
            let arguments = ([AgentInterface.name] + owners).map { BusValue.string($0) }
            let path = "/org/freedesktop/DBus"
            bus.send(
                bus.signal(HostileBus.busName, "NameOwnerChanged", from: HostileBus.busName, at: path, arguments),
                to: client
            )
            return "the agent changes"
        case 5:
            bus.send(bus.post(choices.name(), from: sender), to: client)
            return "\(sender) posts"
        case 6:
            guard let waiting = open.first(where: { !$0.calls.isEmpty }) else { return "nothing" }
            let call = waiting.calls.remove(at: choices.number(below: waiting.calls.count))
            bus.send(answer(call, bus, &choices), to: waiting)
            return "\(call.member) is answered"
        default:
            let arguments = choices.values(of: choices.once(in: 3) ? choices.signature() : "s")
            let path = AgentInterface.path
            bus.send(bus.signal(AgentInterface.name, "Decided", from: sender, at: path, arguments), to: client)
            return "decided"
        }
    }

    private static func reply(
        _ call: HostileBus.Call,
        _ client: HostileBus.Client,
        _ bus: HostileBus,
        _ choices: inout Choices
    ) -> [ForgedMessage]? {
        if call.member == "Hello" { return [bus.answer(call, from: HostileBus.busName, [.string(client.name)])] }
        if call.destination != HostileBus.busName, choices.once(in: 3) { return nil }
        return [answer(call, bus, &choices)]
    }

    private static func answer(_ call: HostileBus.Call, _ bus: HostileBus, _ choices: inout Choices) -> ForgedMessage {
        if choices.once(in: 12) {
            let name = choices.pick([
                "org.freedesktop.DBus.Error.NameHasNoOwner", "org.freedesktop.DBus.Error.LimitsExceeded",
                "org.freedesktop.DBus.Error.AccessDenied",
            ])
            return bus.error(call, from: call.destination, name, choices.text())
        }
        if choices.once(in: 12) {
            return bus.answer(call, from: call.destination, choices.values(of: choices.signature()))
        }
        let arguments: [BusValue] =
            switch call.member {
            case "GetNameOwner": [.string(agent)]
            case "GetConnectionUnixUser": [.uint32(choices.once(in: 5) ? 7 : geteuid())]
            case "GetId": [.string("0123456789abcdef0123456789abcdef")]
            case "StartServiceByName": [.uint32(1)]
            case "Register":
                [.string(choices.state().rawValue), .strings(choices.texts()), .boolean(choices.once(in: 2))]
            default: []
            }
        return bus.answer(call, from: call.destination, arguments)
    }
}
