// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import Synchronization
import TestSupport
import Testing

/// A private bus with an agent, and a connection that controls the agent.
final class AgentBus: Sendable {
    let bus: PrivateBus
    private let process: Mutex<RunningCommand?>
    private let control: RawBusClient
    private let watcher: NotifyCenter

    init(_ kind: BusKind, limits: [String: Int] = [:], policy: String = PrivateBus.openPolicy) throws {
        bus = try PrivateBus(kind, limits: limits, policy: policy)
        control = try RawBusClient(address: bus.address)
        watcher = NotifyCenter(bus: .address(bus.address), peer: Bystander())
        process = Mutex(try AgentBus.startAgent(bus))
        try waitForAgent()
    }

    private static func startAgent(_ bus: PrivateBus) throws -> RunningCommand {
        try start(
            productPath("notify-agent"),
            ["--address", bus.address, "-q"],
            environment: withoutDesktop.merging(["XDG_RUNTIME_DIR": bus.folder]) { $1 },
            output: .null,
            errorOutput: .null
        )
    }

    var agentProcess: pid_t { process.withLock { $0?.pid ?? 0 } }

    /// Returns when the bus knows, too, that the agent is gone.
    func killAgent() throws {
        guard let agent = process.withLock({ $0 }) else { return }
        agent.send(signal: SIGKILL)
        _ = try agent.wait(timeout: .patience)
        process.withLock { $0 = nil }
        try waitForAgent(isThere: false)
    }

    /// Terminates the agent as a service manager would. Returns when the bus knows, too, that it is gone.
    func endAgent() throws {
        guard let agent = process.withLock({ $0 }) else { return }
        agent.send(signal: SIGTERM)
        try #require(try agent.wait(timeout: .patience).status == 0)
        process.withLock { $0 = nil }
        try waitForAgent(isThere: false)
    }

    func restartAgent() throws {
        let next = try AgentBus.startAgent(bus)
        process.withLock { $0 = next }
        try waitForAgent()
    }

    /// Starts an agent that takes over from this one.
    ///
    /// - Returns: what the new one has logged by then.
    @discardableResult
    func replaceAgent() throws -> String {
        let next = try start(
            productPath("notify-agent"),
            ["--address", bus.address, "--replace"],
            environment: withoutDesktop
        )
        let log = try next.waitForErrorOutput(containing: "ready")
        let former = process.withLock { process in
            defer { process = next }
            return process
        }
        try #require(try former?.wait(timeout: .patience).status == 0)
        return log
    }

    func waitForAgent(isThere expected: Bool = true) throws {
        let isAsExpected = try waitUntil(timeout: .patience) {
            let reply = try control.callBus(
                "NameHasOwner",
                signature: "s",
                body: RawBusClient.stringBody(AgentInterface.name)
            )
            return reply.body.first == (expected ? 1 : 0)
        }
        try #require(isAsExpected, "the agent did not \(expected ? "take" : "lose") its name")
    }

    /// Sets a state, and returns when it is in force. On a busy machine that may take longer than the agent waits; asking
    /// again continues the wait.
    func set(_ target: String, _ state: LifecycleState, freeze: Bool = false) throws {
        var reply = try trySetting(target, state, freeze: freeze)
        _ = try waitUntil {
            guard reply.errorName == "org.notifybus.Error.TimedOut" else { return true }
            reply = try trySetting(target, state, freeze: freeze)
            return false
        }
        try #require(reply.kind == .reply, "\(reply.errorName ?? "") \(reply.string ?? "")")
    }

    func trySetting(_ target: String, _ state: LifecycleState, freeze: Bool = false) throws -> RawMessage {
        var body = RawBody()
        body.append(target)
        body.append(state.rawValue)
        body.append(UInt32(freeze ? 1 : 0))
        return try control.call(
            destination: AgentInterface.name,
            path: AgentInterface.path,
            interface: AgentInterface.name,
            member: "SetState",
            signature: "ssb",
            body: body.bytes
        )
    }

    func release(_ target: String) throws {
        var body = RawBody()
        body.append(target)
        let reply = try control.call(
            destination: AgentInterface.name,
            path: AgentInterface.path,
            interface: AgentInterface.name,
            member: "Release",
            signature: "s",
            body: body.bytes
        )
        try #require(reply.kind == .reply, "\(reply.errorName ?? "") \(reply.string ?? "")")
    }

    /// The entries of the agent's list.
    func list() throws -> [[String: BusValue]] {
        let answer = Recorder<[[String: BusValue]]>()
        try watcher.open()
        try watcher.barrier(timeout: .patience)
        watcher.perform { link in
            link.call(AgentInterface.name, path: AgentInterface.path, interface: AgentInterface.name, member: "List") {
                result in
                let values = (try? result.get()) ?? []
                answer.append(values.first?.elements?.compactMap(\.dictionary) ?? [])
            }
        }
        try #require(answer.wait(forCount: 1, timeout: .patience))
        return answer.elements[0]
    }

    func state(of uniqueName: String) throws -> String? {
        try list().first { $0["name"]?.string == uniqueName }?["state"]?.string
    }

    func isParked(_ process: pid_t) throws -> Bool {
        try list().contains { $0["pid"]?.uint32 == UInt32(process) && $0["parked"]?.boolean == true }
    }

    /// Runs something with a connection that controls the agent.
    func perform(_ body: @escaping @Sendable (BusLink) -> Void) {
        try? watcher.open()
        watcher.perform(body)
    }

    func makeCenter() -> NotifyCenter { NotifyCenter(bus: .address(bus.address)) }
}

/// A peer that only makes calls.
private final class Bystander: BusPeer {
    var keepsConnection: Bool { true }
    func linkIsReady(_ link: BusLink) {}
    func linkIsLost(_ error: NotifyBusError) {}
    func handle(_ call: BusCall) -> Bool { false }
    func handle(_ signal: BusSignal) {}
}
