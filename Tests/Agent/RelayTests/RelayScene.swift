// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import NotifyNames
import Synchronization
import TestSupport
import Testing

/// The permission that a manifest needs.
let relayPermission = ["org.notifybus.Relay1"]

/// A private bus with an agent whose relay is open, and sandboxes as Flatpak makes them.
final class RelayScene: Sendable {
    let bus: PrivateBus
    let poster: NotifyCenter
    /// Between the agent and the bus.
    private let passage: BusRelay?
    private let agent: Mutex<RunningCommand>
    private let configuration: String
    private let opensRelay: Bool

    /// - Parameters:
    ///   - services: a folder with what the bus can start; without systemd dbus-broker starts nothing.
    ///   - canCutRelay: whether `cutRelay` is to be called.
    init(
        _ kind: BusKind,
        configuration: String = "",
        services: String? = nil,
        opensRelay: Bool = true,
        canCutRelay: Bool = false
    ) throws {
        let folder = services.map { "<servicedir>\($0)</servicedir>" } ?? ""
        bus = try PrivateBus(kind, policy: PrivateBus.openPolicy + folder)
        (self.configuration, self.opensRelay) = (configuration, opensRelay)
        poster = NotifyCenter(bus: .address(bus.address))
        passage = canCutRelay ? try BusRelay(to: bus.address) : nil
        agent = Mutex(try RelayScene.startAgent(bus, by: passage, configuration))
        if opensRelay { try openRelay() }
    }

    deinit { passage?.close() }

    private static func startAgent(
        _ bus: PrivateBus,
        by passage: BusRelay? = nil,
        _ configuration: String,
        _ options: String...
    ) throws -> RunningCommand {
        let address = passage?.address ?? bus.address
        let agent = try start(
            productPath("notify-agent"),
            ["--address", address, "--config", "/dev/stdin"] + options,
            environment: withoutDesktop
        )
        try agent.writeInput(configuration)
        agent.closeInput()
        let client = try RawBusClient(address: bus.address)
        let body = RawBusClient.stringBody("org.notifybus.Agent1")
        let isThere = try waitUntil { try client.callBus("NameHasOwner", signature: "s", body: body).body.first == 1 }
        try #require(isThere, "the agent did not take its name")
        return agent
    }

    var agentProcess: pid_t { agent.withLock { $0.pid } }

    /// Does what the bus does when a program calls the relay.
    func openRelay() throws {
        let result = try requestRelay()
        try #require(result.status == 0, "\(result.errorOutput)")
    }

    func requestRelay() throws -> CommandResult {
        try run(productPath("notify-agent"), ["--relay", "--address", bus.address], timeout: .patience)
    }

    /// Kills the agent, and the relay with it, and starts others.
    func restartAgent() throws {
        try killAgent()
        try startAgentAgain()
    }

    /// Lets another agent take over from this one, does not ask it for a relay, and returns when this one has ended.
    func replaceAgent(configuration: String = "") throws {
        let old = agent.withLock { $0 }
        let new = try RelayScene.startAgent(bus, configuration, "--replace")
        agent.withLock { $0 = new }
        _ = try old.wait()
    }

    /// Several agents take over from this one, and from each other. Returns when all but one have ended.
    func replaceAgentOften() throws {
        let old = agent.withLock { $0 }
        old.send(signal: SIGSTOP)
        let next = try (0..<3).map { _ in try RelayScene.startAgent(bus, "", "--replace") }
        old.send(signal: SIGCONT)
        func left() -> [RunningCommand] { ([old] + next).filter { ![nil, "Z"].contains(processState($0.pid)) } }
        try #require(waitUntil(timeout: .patience) { left().count == 1 })
        agent.withLock { if let last = left().first { $0 = last } }
    }

    /// Ends the connection of the relay alone.
    func cutRelay() { passage?.cutNewest() }

    func killAgent() throws {
        let old = agent.withLock { $0 }
        old.send(signal: SIGKILL)
        _ = try old.wait()
    }

    func startAgentAgain() throws {
        let new = try RelayScene.startAgent(bus, by: passage, configuration)
        agent.withLock { $0 = new }
        if opensRelay { try openRelay() }
    }

    func makeSandbox(talkingTo names: [String] = relayPermission) throws -> FlatpakSandbox {
        let sandbox = try FlatpakSandbox(on: bus, talkingTo: names)
        // It is there for some seconds unless a program registers.
        if opensRelay { try openRelay() }
        return sandbox
    }

    /// Starts `notify-wait` in a sandbox, and returns when its observer is live.
    func startWaiting(_ arguments: String..., in sandbox: FlatpakSandbox) throws -> RunningCommand {
        let observer = try sandbox.start(productPath("notify-wait"), ["-v"] + arguments)
        try observer.waitForErrorOutput(containing: "the observer is live")
        return observer
    }

    /// Runs `notify-lifecycle`, and returns what it prints. On a busy machine a change may take longer than it waits;
    /// running it again continues the wait.
    @discardableResult
    func lifecycle(_ arguments: String...) throws -> String {
        func ask() throws -> CommandResult {
            try run(productPath("notify-lifecycle"), ["--address", bus.address] + arguments, timeout: .patience)
        }
        var result = try ask()
        _ = try waitUntil {
            guard result.status == 2 else { return true }
            result = try ask()
            return false
        }
        try #require(result.status == 0, "\(result.errorOutput)")
        return result.output
    }

    /// The process that is the only observer to the agent: the sandbox's proxy.
    func observerProcess() throws -> pid_t {
        let line = try lifecycle("list", "-q").split(separator: "\n").first
        return try #require(line?.split(separator: " ").first.flatMap { pid_t($0) })
    }

    func post(_ names: [String]) throws {
        for name in names { try poster.postOnceConnected(NotifyName(name)) }
        try poster.synchronize(timeout: nil)
    }
}
