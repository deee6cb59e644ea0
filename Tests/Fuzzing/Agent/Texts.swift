// SPDX-License-Identifier: Apache-2.0

import FuzzDriver
import NotifyAgent
import NotifyCoordinator
import NotifyCore
import NotifyNames

/// Values that come as arguments, in the types of the protocol.
enum ValueReading {
    private static let messages: [any ProtocolArguments.Type] =
        AgentInterface.methods.map { $0 } + AgentInterface.signals.map { $0 } + RelayInterface.methods.map { $0 } + [
            ObserverInterface.SetState.self, ObserverInterface.Deliver.self, ObserverInterface.DeliverPosts.self,
            ObserverInterface.Mark.self, ObserverInterface.KeepStates.self, AgentInterface.Register.Answer.self,
            AgentInterface.List.Answer.self,
            AgentInterface.Status.Answer.self, AgentInterface.ConnectionCount.self,
            AgentInterface.SetNameState.Answer.self, AgentInterface.SwapNameState.Answer.self,
            AgentInterface.Hold.Answer.self,
            AgentInterface.GetNameState.Answer.self,
            ObserverInterface.SetState.Answer.self,
        ]

    static func run(_ choices: Choices) {
        var choices = choices
        while !choices.isOver {
            let type = choices.pick(messages)
            let signature = choices.once(in: 6) ? choices.signature() : type.signature
            // Not our descriptors: those of refused messages are closed.
            tryReading(type, choices.values(of: signature).map(withoutDescriptors))
            power(&choices)
        }
    }

    /// Accepted values are written and read again as the same.
    private static func tryReading<Message: ProtocolArguments>(_ type: Message.Type, _ values: [BusValue]) {
        guard let message = try? Message(values) else { return }
        guard let again = try? Message(message.arguments) else {
            fail("\(Message.self) can't read what it has written")
        }
        guard again == message || "\(again)" == "\(message)" else { fail("\(Message.self) changes what it has read") }
    }

    private static func withoutDescriptors(_ value: BusValue) -> BusValue {
        switch value {
        case .descriptor: .descriptor(-1)
        case .number(UInt8(ascii: "h"), _): .descriptor(-1)
        case .array(let element, let values): .array(element: element, values.map(withoutDescriptors))
        case .structure(let values): .structure(values.map(withoutDescriptors))
        case .entry(let key, let inner): .entry(key, withoutDescriptors(inner))
        case .variant(let inner): .variant(withoutDescriptors(inner))
        default: value
        }
    }

    /// What UPower reports.
    private static func power(_ choices: inout Choices) {
        func state() -> PowerState {
            var state = PowerState()
            state.isOnBattery = choices.once(in: 2)
            state.kind = choices.pick([.none, .battery, .ups])
            state.percentage = choices.real()
            state.warning = UInt32(truncatingIfNeeded: choices.number())
            state.timeToEmpty = Int64(bitPattern: choices.number())
            return state
        }
        let (before, after) = (state(), state())
        _ = after.changes(from: choices.once(in: 3) ? nil : before, isNew: choices.once(in: 2))
    }
}

/// Texts that others write: files, `/proc`, a compositor, the environment.
enum TextReading {
    static func run(_ choices: Choices) {
        var choices = choices
        let kind = choices.number(below: 9)
        let bytes = choices.rest()
        let text = String(decoding: bytes, as: UTF8.self)
        switch kind {
        case 0:
            var reader = JSONReader()
            if reader.take(bytes.prefix(20)), reader.take(bytes.dropFirst(20)), let value = reader.finish() {
                _ = SwayWire.focusedWindow(in: value)
                _ = SwayWire.window(of: value)
            }
        case 1:
            // The magic, so that the rest is reached.
            var reader = SwayReader()
            for part in [SwayWire.magic, Array(bytes.prefix(20)), Array(bytes.dropFirst(20))] {
                _ = try? reader.take(part)
            }
        case 2:
            _ = ProcessFolder.state(inStat: bytes)
            _ = ProcessFolder.startTime(inStat: bytes)
            _ = ProcessFolder.users(inStatus: text)
        case 3:
            let (unified, systemd) = AppIdentity.cgroups(in: text)
            for path in [unified, systemd, text].compactMap(\.self) {
                _ = AppIdentity.application(ofCgroup: path)
                _ = AppIdentity.unit(ofCgroup: path)
                _ = AppIdentity.session(ofCgroup: path)
                _ = AppIdentity.isFlatpak(cgroup: path)
            }
            _ = AppIdentity.snap(inLabel: text)
            _ = AppIdentity.application(ofUnit: text)
            _ = CgroupMount(mountinfo: text)
        case 4: _ = try? LaunchFile.read(text, title: "fuzz", trust: .user)
        case 5: _ = try? Duration.nanoseconds(in: bytes)
        case 6:
            if let target = Target(text), Target(target.description) != target { fail("a target changes when written") }
            if let name = try? NotifyName(text), !name.string.utf8.elementsEqual(text.utf8) { fail("a name changes") }
            _ = try? Subjects(names: [text], prefixes: [text])
        case 7: _ = try? Estate(reading: [1, 0, 0, 0] + bytes)
        default:
            _ = bytes.withUnsafeBytes { try? NotifyName(utf8: $0) }
            // A stopped program's stream, with its beginning torn off.
            let reader = MessageReader(.anywhere)
            bytes.withUnsafeBytes(reader.feed)
            while case .message = reader.next() {}
        }
    }
}
