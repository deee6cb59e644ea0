// SPDX-License-Identifier: Apache-2.0

import FuzzDriver
import Glibc
import NotifyAgent
import NotifyCoordinator
import NotifyCore
import NotifyNames

/// Which service the others on the bus are believed to be.
private enum Place {
    static let systemd = ":1.7"
    static let logind = ":1.8"
    static let others = [":1.1", ":1.2", ":1.3", ":1.4", systemd, logind, HostileBus.busName]
    static let services = ["org.freedesktop.systemd1", "org.freedesktop.login1", "org.freedesktop.UPower"]
}

/// A whole agent, with its relay and its launcher, on a hostile bus.
struct AgentScene {
    private let bus: HostileBus
    private var choices: Choices
    private let agent: AgentService
    private var steps: [String] = []

    static func run(_ choices: Choices) {
        let path = Room.path + "/bus"
        setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=\(path)", 1)
        var choices = choices
        let bus = HostileBus(path: path)
        let place: NotifyCenter.Bus = choices.once(in: 3) ? .system : .address(bus.address)
        var configuration = Agent.Configuration()
        configuration.version = "1"
        // Few, so that the limits are reached.
        configuration.quotas.connections = 3
        // Now and then enough for a large call that is accepted.
        configuration.quotas.names = choices.once(in: 4) ? 64 : 8
        configuration.quotas.prefixes = 4
        configuration.quotas.calls = 6
        configuration.quotas.pendingNames = 6
        let logger = Logger(level: .debug) { _, _ in }
        let agent: AgentService
        do throws(NotifyBusError) {
            agent = try AgentService(bus: place, configuration: configuration, logger: logger) { _ in }
        } catch {
            fail("the agent does not start: \(error)")
        }
        var scene = AgentScene(bus: bus, choices: choices, agent: agent)
        scene.play()
        bus.hangUp()
        _ = agent.stop()
        bus.end()
        ended.withLock { ended in
            ended.append(agent)
            if ended.count > 16 { ended.removeFirst() }
        }
    }

    /// Agents live as long as their process, so its other threads need not be done with one that has stopped.
    private static let ended = Monitor<[AgentService]>([])

    private mutating func play() {
        let stream = Stream(choices)
        bus.reply = { [unowned bus] call, client in AgentScene.reply(call, client, bus, &stream.choices) }
        bus.work(until: { bus.owner(of: AgentInterface.name) != nil }, "the agent's start")
        bus.settle("the beginning")
        while !stream.choices.isOver {
            step(&stream.choices)
            bus.settle(steps.suffix(8).joined(separator: "; "))
        }
    }

    /// The choices, shared by what is sent unasked and what is replied.
    private final class Stream {
        var choices: Choices
        init(_ choices: Choices) { self.choices = choices }
    }

    // MARK: - What others do

    private mutating func step(_ choices: inout Choices) {
        switch choices.number(below: 8) {
        case 0...3: call(&choices)
        case 4: answerLate(&choices)
        case 5: signal(&choices)
        case 6: post(&choices)
        default: leave(&choices)
        }
    }

    private static let calls: [(member: String, signature: String)] = [
        ("Register", "a{sv}"), ("Register", "a{sv}"), ("AddNames", "asas"), ("RemoveNames", "asas"), ("Report", "s"),
        ("SetState", "ssb"), ("SetState", "ssb"), ("Release", "s"), ("FollowDesktop", "b"), ("SetForeground", "u"),
        ("SetForeground", "d"), ("SetNameState", "st"), ("GetNameState", "s"), ("SwapNameState", "stt"),
        ("Hold", "s"), ("LetGo", "st"), ("List", ""), ("Status", ""),
        ("OpenRelay", ""), ("SetNaps", "b"), ("Synchronize", ""), ("Ping", ""), ("Introspect", ""),
        ("GetAll", "s"),
        ("Get", "ss"),
    ]

    private mutating func call(_ choices: inout Choices) {
        let (member, signature) = choices.pick(AgentScene.calls)
        let isLarge = choices.once(in: 16)
        let isRelayed = choices.once(in: 3)
        let name = isRelayed ? RelayInterface.name : AgentInterface.name
        guard let client = bus.owner(of: name) else { return }
        var call = bus.message(.call, from: choices.pick([":1.1", ":1.2", ":1.3", ":1.4"]))
        (call.path, call.interface) = (isRelayed ? RelayInterface.path : AgentInterface.path, name)
        if choices.once(in: 12) { call.interface = "org.freedesktop.DBus.Properties" }
        call.member = member
        call.wantsReply = !choices.once(in: 5)
        call.arguments = isLarge ? large(member, &choices) : arguments(of: member, signature, &choices)
        // A signature has at most 255 bytes.
        if call.arguments.map(\.signature).joined().utf8.count > 255 { call.arguments = [] }
        steps.append("\(call.sender) calls \(member)\(isLarge ? " with much" : "")")
        bus.send(call, to: client)
    }

    /// Arguments that make a call so large that it waits behind everybody's small ones.
    private func large(_ member: String, _ choices: inout Choices) -> [BusValue] {
        let count = choices.pick([40, 64, 65, 200])
        // With them it is larger than 16 KB, with the last it needs several reads.
        let text = String(repeating: "x", count: 440)
        let names = BusValue.strings((0..<count).map { "com.example.large.\($0).\(text)" })
        switch member {
        case "Register":
            return [.dictionary([("names", names), ("state", .string(choices.pick(["", "suspended"])))])]
        case "AddNames", "RemoveNames": return [names, .strings([])]
        default: return [names]
        }
    }

    private func arguments(of member: String, _ signature: String, _ choices: inout Choices) -> [BusValue] {
        if choices.once(in: 12) { return choices.values(of: choices.signature()) }
        switch member {
        case "Register" where !choices.once(in: 4):
            // Mostly one that is accepted.
            let subjects = choices.subjects()
            return [
                .dictionary([
                    ("names", .strings(subjects.names.map(\.string))),
                    ("prefixes", .strings(subjects.prefixes.map(\.string))),
                    ("state", .string(choices.pick(["", "foreground", "background", "suspended"]))),
                    ("previous", .string(choices.pick(["", ":1.1", ":1.2", ":1.9"]))),
                    ("earlier", .strings(choices.once(in: 4) ? [":1.1", ":1.3"] : [])),
                    ("followsDesktop", .boolean(choices.once(in: 3))), ("program", .string(choices.text())),
                    (
                        "states",
                        .array(
                            element: "(stt)",
                            (0..<choices.number(below: 3)).map { _ in
                                .structure([
                                    .string(choices.name().string), .uint64(choices.number()),
                                    .uint64(choices.number()),
                                ])
                            }
                        )
                    ),
                ])
            ]
        case "AddNames", "RemoveNames":
            let subjects = choices.subjects()
            return [.strings(subjects.names.map(\.string)), .strings(subjects.prefixes.map(\.string))]
        case "Report": return [.string(choices.state().rawValue)]
        case "SetState":
            let target = choices.pick([":1.1", ":1.2", ":1.3", "pid:\(Room.processes[0])", "pid:\(getpid())", "app:a"])
            return [.string(target), .string(choices.state().rawValue), .boolean(choices.once(in: 3))]
        case "SetNameState": return [.string(choices.name().string), .uint64(choices.number())]
        case "SwapNameState":
            return [.string(choices.name().string), .uint64(choices.number()), .uint64(choices.number())]
        case "GetNameState": return [.string(choices.name().string)]
        default: return choices.values(of: signature)
        }
    }

    private mutating func answerLate(_ choices: inout Choices) {
        let waiting = bus.clients.filter { $0.isOpen && !$0.calls.isEmpty }
        guard !waiting.isEmpty else { return }
        let client = choices.pick(waiting)
        let call = client.calls.remove(at: choices.number(below: client.calls.count))
        steps.append("\(call.destination) answers \(call.member)")
        bus.send(AgentScene.answer(call, client, bus, &choices), to: client)
    }

    private static let signals: [(interface: String, member: String, signature: String)] = [
        (HostileBus.busName, "NameOwnerChanged", "sss"), (HostileBus.busName, "NameLost", "s"),
        ("org.freedesktop.DBus.Properties", "PropertiesChanged", "sa{sv}as"),
        ("org.freedesktop.systemd1.Manager", "JobRemoved", "uoss"),
        ("org.freedesktop.login1.Manager", "SessionNew", "so"),
        ("org.freedesktop.login1.Manager", "PrepareForSleep", "b"),
        ("org.freedesktop.login1.Manager", "PrepareForShutdown", "b"),
        ("org.freedesktop.UPower", "DeviceAdded", "o"), ("org.freedesktop.portal.Settings", "SettingChanged", "ssv"),
        ("org.freedesktop.ScreenSaver", "ActiveChanged", "b"), (ObserverInterface.name, "Mark", "t"),
    ]

    private mutating func signal(_ choices: inout Choices) {
        let open = bus.clients.filter(\.isOpen)
        guard !open.isEmpty else { return }
        let client = choices.pick(open)
        let (interface, member, signature) = choices.pick(AgentScene.signals)
        var arguments = choices.values(of: choices.once(in: 10) ? choices.signature() : signature)
        switch member {
        case "PropertiesChanged" where !arguments.isEmpty:
            arguments[0] = .string(
                choices.pick([
                    "org.freedesktop.systemd1.Unit", "org.freedesktop.login1.Session",
                    "org.freedesktop.UPower.Device", "org.freedesktop.UPower",
                ])
            )
        case "NameOwnerChanged" where choices.once(in: 2):
            let service = choices.pick(Place.services)
            arguments = [.string(service), .string(""), .string(choices.pick(["", Place.systemd, Place.logind]))]
        case "JobRemoved" where arguments.count == 4:
            arguments[1] = .text(code: UInt8(ascii: "o"), "/org/freedesktop/systemd1/job/1")
        default: break
        }
        let path = choices.pick([
            "/org/freedesktop/DBus", "/org/freedesktop/login1/session/_31", "/org/freedesktop/systemd1",
            "/org/freedesktop/systemd1/unit/fuzz_2eservice", "/org/freedesktop/UPower/devices/DisplayDevice",
        ])
        steps.append("signal \(member)")
        guard arguments.map(\.signature).joined().utf8.count <= 255 else { return }
        bus.send(
            bus.signal(interface, member, from: choices.pick(Place.others), at: path, arguments),
            to: client
        )
    }

    private mutating func post(_ choices: inout Choices) {
        let name = choices.name()
        let sender = choices.pick(Place.others)
        steps.append("\(sender) posts \(name)")
        for client in bus.clients where client.isOpen {
            bus.send(bus.post(name, from: sender), to: client)
        }
    }

    private mutating func leave(_ choices: inout Choices) {
        let name = choices.pick([":1.1", ":1.2", ":1.3", ":1.4"])
        steps.append("\(name) leaves")
        for client in bus.clients where client.isOpen {
            let arguments = [name, name, ""].map { BusValue.string($0) }
            bus.send(
                bus.signal(
                    HostileBus.busName,
                    "NameOwnerChanged",
                    from: HostileBus.busName,
                    at: "/org/freedesktop/DBus",
                    arguments
                ),
                to: client
            )
        }
    }

    // MARK: - What others reply

    /// The reply to a call; nil if it is to come later.
    private static func reply(
        _ call: HostileBus.Call,
        _ client: HostileBus.Client,
        _ bus: HostileBus,
        _ choices: inout Choices
    ) -> [ForgedMessage]? {
        // Without these there is nothing to test.
        switch call.member {
        case "Hello": return [bus.answer(call, from: HostileBus.busName, [.string(client.name)])]
        case "RequestName":
            if let name = call.arguments.first?.string { client.owns.insert(name) }
            return [bus.answer(call, from: HostileBus.busName, [.uint32(1)])]
        default: break
        }
        // The bus itself answers in order; others when they like.
        if call.destination != HostileBus.busName, choices.once(in: 3) { return nil }
        return [answer(call, client, bus, &choices)]
    }

    private static func answer(
        _ call: HostileBus.Call,
        _ client: HostileBus.Client,
        _ bus: HostileBus,
        _ choices: inout Choices
    ) -> ForgedMessage {
        if choices.once(in: 10) {
            let name = choices.pick([
                "org.freedesktop.DBus.Error.ServiceUnknown", "org.freedesktop.DBus.Error.NameHasNoOwner",
                "org.freedesktop.DBus.Error.LimitsExceeded", "org.notifybus.Error.NamesAdded",
                "org.freedesktop.systemd1.UnitExists",
            ])
            return bus.error(call, from: call.destination, name, choices.text())
        }
        if choices.once(in: 10) {
            return bus.answer(call, from: call.destination, choices.values(of: choices.signature()))
        }
        return bus.answer(call, from: call.destination, likelyAnswer(to: call, &choices))
    }

    private static func likelyAnswer(to call: HostileBus.Call, _ choices: inout Choices) -> [BusValue] {
        func object(_ path: String) -> BusValue { .text(code: UInt8(ascii: "o"), path) }
        let first = call.arguments.first?.string ?? ""
        switch call.member {
        case "GetNameOwner":
            switch first {
            case "org.freedesktop.systemd1": return [.string(Place.systemd)]
            case "org.freedesktop.login1": return [.string(Place.logind)]
            default: return [.string(choices.pick([Place.logind, ":1.1"]))]
            }
        case "GetConnectionCredentials":
            return [.dictionary([("UnixUserID", .uint32(user(&choices))), ("ProcessID", .uint32(process(&choices)))])]
        case "GetConnectionUnixUser": return [.uint32(user(&choices))]
        case "GetConnectionUnixProcessID": return [.uint32(process(&choices))]
        case "NameHasOwner", "GetActive": return [.boolean(choices.once(in: 2))]
        case "GetId": return [.string("0123456789abcdef0123456789abcdef")]
        case "StartServiceByName": return [.uint32(UInt32(choices.number(below: 3)))]
        case "ReleaseName": return [.uint32(1)]
        // Of an observer.
        case "SetState": return [.uint64(choices.number())]
        case "LoadUnit": return [object("/org/freedesktop/systemd1/unit/fuzz_2eservice")]
        case "StartUnit", "RestartUnit", "StopUnit", "StartTransientUnit":
            return [object("/org/freedesktop/systemd1/job/1")]
        case "ListUnitsByPatterns":
            let number = choices.number()
            let texts = ["notifybus-launch-run-\(number).service", "", "loaded", "active", "running", ""]
            let fields: [BusValue] =
                texts.map { .string($0) } + [object("/a"), .uint32(0), .string(""), object("/a")]
            return [.array(element: "(ssssssouso)", [.structure(fields)])]
        case "Get":
            let value: BusValue = choices.once(in: 2) ? .string(choices.text()) : .uint64(choices.number())
            return [.variant(value)]
        case "GetAll": return choices.values(of: "a{sv}")
        case "ListSessions":
            let session: [BusValue] = [
                .string("1"), .uint32(user(&choices)), .string("x"), .string("seat0"),
                object("/org/freedesktop/login1/session/_31"),
            ]
            return [.array(element: "(susso)", [.structure(session)])]
        case "Inhibit": return choices.values(of: "h")
        default: return []
        }
    }

    private static func user(_ choices: inout Choices) -> UInt32 {
        choices.once(in: 5) ? UInt32(truncatingIfNeeded: choices.number()) : geteuid()
    }

    /// Never a process of anybody else, which the agent might stop.
    private static func process(_ choices: inout Choices) -> UInt32 {
        let own = Room.processes + [UInt32(getpid())]
        if choices.once(in: 6) { return choices.pick([0, 1 << 23, 1 << 31 - 1, 1 << 31, .max]) }
        return choices.pick(own)
    }
}
