// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

/// What the launcher asks a service manager, in whose place this test answers.
@Suite struct ServiceManagerTests {
    /// A bus with a service manager, and a folder for entries of launch.d.
    private struct Stage {
        let bus: PrivateBus
        let folder: TemporaryFolder
        let manager: RawBusClient

        init(_ kind: BusKind) throws {
            (bus, folder) = (try PrivateBus(kind), try TemporaryFolder())
            try run("mkdir", ["-p", "\(folder.path)/notifybus/launch.d"])
            manager = try RawBusClient(address: bus.address)
            var body = RawBody()
            body.append("org.freedesktop.systemd1")
            body.append(UInt32(4))
            try manager.callBus("RequestName", signature: "su", body: body.bytes)
        }

        func write(_ name: String, _ lines: String...) throws {
            try folder.write(lines.map { $0 + "\n" }.joined(), to: "notifybus/launch.d/\(name).conf")
        }

        /// Another entry, so that the launcher still has something to do.
        func addOther() throws {
            try write("other", "name = com.example.other", "start = other.service", "from = anyone")
            for member in ["LoadUnit", "Get"] { _ = try calls(upTo: member).last.map { try answer($0) } }
            try waitFor("idle", of: "other")
        }

        func remove(_ name: String) throws {
            try run("rm", ["\(folder.path)/notifybus/launch.d/\(name).conf"])
            try waitFor(nil, of: name)
        }

        func startAgent(_ arguments: String...) throws -> RunningCommand {
            let agent = try start(
                productPath("notify-agent"),
                ["--address", bus.address] + arguments,
                environment: withoutDesktop.merging(["XDG_CONFIG_HOME": folder.path]) { $1 }
            )
            try agent.waitForErrorOutput(containing: "ready")
            return agent
        }

        /// Waits until the agent says that an entry is in this state; in none if it has no such entry.
        func waitFor(_ state: String?, of entry: String) throws {
            let isSo = try waitUntil(timeout: .patience) {
                let list = try run(productPath("notify-lifecycle"), ["--address", bus.address, "launches", "-q"])
                let line = list.output.split(separator: "\n").first { $0.hasPrefix(entry + " ") }
                return list.status == 0 && (state.map { line?.contains(" \($0) ") == true } ?? (line == nil))
            }
            try #require(isSo)
        }

        // MARK: - The service manager

        /// Answers calls up to the next one of a method, which is left to the caller.
        ///
        /// - Returns: all of them.
        func calls(upTo member: String) throws -> [RawMessage] {
            var calls: [RawMessage] = []
            while calls.last?.member != member {
                calls.append(try manager.readCall())
                if calls.last?.member != member { try answer(calls[calls.count - 1]) }
            }
            return calls
        }

        /// Answers all calls that have been sent to the service manager.
        func callsUntilNow() throws -> [RawMessage] {
            var end = RawMessage(.call)
            (end.destination, end.path, end.interface, end.member) = (manager.uniqueName, "/", "com.example.End", "End")
            try manager.send(end)
            return try calls(upTo: "End").dropLast()
        }

        func answer(_ call: RawMessage, signature: String = "", _ body: RawBody = RawBody()) throws {
            var answer = RawMessage(.reply)
            answer.destination = call.sender
            answer.replySerial = call.serial
            answer.flags = 1
            answer.signature = signature
            answer.body = body.bytes
            try manager.send(answer)
        }

        /// Says which unit runs for a command.
        func answer(_ call: RawMessage, running unit: String) throws {
            let list = AnsweringService.Answer.unit(unit)
            try answer(call, signature: list.signature, list.body)
        }
    }

    @Test(arguments: busKinds, ["start = late.service", "run = true"])
    func `what the service manager says about an entry that is gone changes nothing`(kind: BusKind, action: String)
        throws
    {
        let stage = try Stage(kind)
        try stage.write("late", "name = com.example.late", action)
        let agent = try stage.startAgent()
        let question = action == "run = true" ? "ListUnitsByPatterns" : "LoadUnit"
        let call = try #require(stage.calls(upTo: question).last)
        try stage.addOther()
        try stage.remove("late")
        if question == "LoadUnit" {
            try stage.answer(call)
        } else {
            try stage.answer(call, running: "notifybus-launch-late-1.service")
        }
        // Once that has been read the agent hears this.
        try stage.manager.callBus("GetId")
        try RawBusClient(address: stage.bus.address).post("com.example.other")
        let later = try stage.calls(upTo: "StartUnit")
        #expect(!later.contains { $0.path?.contains("late") == true || $0.string?.contains("late") == true })
        agent.send(signal: SIGTERM)
        _ = try agent.wait(timeout: .patience)
    }

    @Test(arguments: busKinds)
    func `a command whose entry goes while its last run is being stopped is not started again`(kind: BusKind) throws {
        let stage = try Stage(kind)
        try stage.write("job", "name = com.example.go", "run = true", "on-busy = restart", "from = anyone")
        let agent = try stage.startAgent()
        let question = try #require(stage.calls(upTo: "ListUnitsByPatterns").last)
        try stage.answer(question, running: "notifybus-launch-job-1.service")
        var state = RawBody()
        state.append(signature: "s")
        state.append("active")
        _ = try stage.calls(upTo: "Get").last.map { try stage.answer($0, signature: "v", state) }
        try stage.waitFor("running", of: "job")
        try RawBusClient(address: stage.bus.address).post("com.example.go")
        let stop = try #require(stage.calls(upTo: "StopUnit").last)
        try stage.addOther()
        try stage.remove("job")
        try stage.answer(stop)
        try stage.manager.callBus("GetId")
        try RawBusClient(address: stage.bus.address).post("com.example.other")
        #expect(try !stage.calls(upTo: "StartUnit").contains { $0.member == "StartTransientUnit" })
        agent.send(signal: SIGTERM)
        _ = try agent.wait(timeout: .patience)
    }

    @Test(arguments: busKinds)
    func `once another agent has taken over only that one starts something`(kind: BusKind) throws {
        let stage = try Stage(kind)
        try stage.write("job", "name = com.example.go", "run = true", "from = anyone")
        let old = try stage.startAgent()
        _ = try stage.calls(upTo: "ListUnitsByPatterns").last.map { try stage.answer($0) }
        try stage.waitFor("idle", of: "job")
        let owner = try stage.manager.callBus(
            "GetNameOwner",
            signature: "s",
            body: RawBusClient.stringBody("org.notifybus.Agent1")
        )
        let oldName = try #require(owner.string)
        old.send(signal: SIGSTOP)
        try #require(waitUntil(timeout: .patience) { processState(old.pid) == "T" })
        let new = try stage.startAgent("--replace")
        _ = try stage.calls(upTo: "ListUnitsByPatterns").last.map { try stage.answer($0) }
        try stage.waitFor("idle", of: "job")
        try RawBusClient(address: stage.bus.address).post("com.example.go")
        _ = try stage.calls(upTo: "StartTransientUnit")
        old.send(signal: SIGCONT)
        _ = try old.wait(timeout: .patience)
        try #require(waitUntil(timeout: .patience) { try !stage.manager.uniqueNames().contains(oldName) })
        #expect(try !stage.callsUntilNow().contains { $0.member == "StartTransientUnit" })
        new.send(signal: SIGTERM)
        _ = try new.wait(timeout: .patience)
    }
}
