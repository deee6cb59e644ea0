// SPDX-License-Identifier: Apache-2.0

import NotifyCore

extension Agent {
    /// Answers a call, now or later.
    func answer(_ call: BusCall, on link: borrowing BusLink) throws(BusFault) {
        if call.interface == "org.freedesktop.DBus.Peer" || call.interface.isEmpty && call.member == "Ping" {
            return try answerPeer(call, on: link)
        }
        let introspectable = "org.freedesktop.DBus.Introspectable"
        if call.interface == introspectable || call.interface.isEmpty && call.member == "Introspect" {
            guard call.member == "Introspect" else {
                call.arguments.closeDescriptors()
                throw .unknownMethod(call)
            }
            try expect(call, "")
            guard let xml = Introspection.text(for: call.path) else { throw .unknownMethod(call) }
            return link.reply(to: call, [.string(xml)])
        }
        guard call.path == AgentInterface.path else {
            call.arguments.closeDescriptors()
            throw .unknownMethod(call)
        }
        switch call.interface {
        case "org.freedesktop.DBus.Properties": try answerProperties(call, on: link)
        case AgentInterface.name, "": try answerAgent(call, on: link)
        default:
            call.arguments.closeDescriptors()
            throw .unknownMethod(call)
        }
    }

    private func answerAgent(_ call: BusCall, on link: borrowing BusLink) throws(BusFault) {
        switch call.member {
        case "Register":
            try register(call, Registration(call.arguments), on: link)
        case "AddNames":
            try expect(call, "asas")
            try addNames(call, subjects(of: call), on: link)
        case "RemoveNames":
            try expect(call, "asas")
            try removeNames(call, subjects(of: call), on: link)
        case "Report":
            try expect(call, "s")
            try report(call, state(in: call.arguments[0]), on: link)
        case "SetState":
            try expect(call, "ssb")
            try setState(call, on: link)
        case "FollowDesktop":
            try expect(call, "b")
            try followDesktop(call, on: link)
        case "Release":
            try expect(call, "s")
            try release(call, on: link)
        case "SetForeground":
            try setForeground(call, on: link)
        case "SetNameState":
            try expect(call, "st")
            try setNameState(call, on: link)
        case "GetNameState":
            try expect(call, "s")
            try getNameState(call, on: link)
        case "List":
            try expect(call, "")
            link.reply(to: call, list().arguments)
        case "Status":
            try expect(call, "")
            link.reply(to: call, status().arguments)
        default:
            call.arguments.closeDescriptors()
            throw .unknownMethod(call)
        }
    }

    private func answerPeer(_ call: BusCall, on link: borrowing BusLink) throws(BusFault) {
        switch call.member {
        case "Ping":
            try expect(call, "")
            link.reply(to: call)
        case "GetMachineId":
            try expect(call, "")
            let files = ["/etc/machine-id", "/var/lib/dbus/machine-id"]
            guard let text = files.lazy.compactMap({ SystemFile.text(of: $0) }).first else {
                throw .failed("This machine has no id.")
            }
            link.reply(to: call, [.string(text.filter { $0 != "\n" })])
        default:
            call.arguments.closeDescriptors()
            throw .unknownMethod(call)
        }
    }

    /// Checks the types of a call's arguments. What is wrong is closed.
    func expect(_ call: BusCall, _ signature: String) throws(BusFault) {
        let given = call.arguments.map(\.signature).joined()
        guard given != signature else { return }
        call.arguments.closeDescriptors()
        throw .invalidArguments(
            "\(call.member) takes arguments of type '\(signature)', not '\(given.utf8.count > 255 ? "…" : given)'."
        )
    }

    private func subjects(of call: BusCall) throws(BusFault) -> Subjects {
        try Subjects(namesOnBus: call.arguments[0].strings ?? [], prefixes: call.arguments[1].strings ?? [])
    }

    func state(in value: BusValue) throws(BusFault) -> LifecycleState {
        guard let state = LifecycleState(rawValue: value.string ?? "") else {
            throw .invalidArguments("A state is 'foreground', 'background' or 'suspended'.")
        }
        return state
    }
}
