// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization
import TestSupport
import Testing

/// A private bus with an agent and `notify-wait` as observers. This test takes the desktop's place.
final class Scene: Sendable {
    let bus: PrivateBus
    private let configuration: String
    private let environment: [String: String?]
    private let agent: Mutex<RunningCommand>
    private let desktop = Mutex<RawBusClient?>(nil)

    init(_ kind: BusKind, configuration: String = "", environment: [String: String?] = [:]) throws {
        bus = try PrivateBus(kind)
        self.configuration = configuration
        self.environment = withoutDesktop.merging(["XDG_RUNTIME_DIR": bus.folder]) { $1 }.merging(environment) { $1 }
        agent = Mutex(try Scene.startAgent(bus, configuration, self.environment, []))
    }

    private static func startAgent(
        _ bus: PrivateBus,
        _ configuration: String,
        _ environment: [String: String?],
        _ arguments: [String]
    ) throws -> RunningCommand {
        let agent = try start(
            productPath("notify-agent"),
            ["--address", bus.address, "--config", "/dev/stdin"] + arguments,
            environment: environment
        )
        try agent.writeInput(configuration)
        agent.closeInput()
        try agent.waitForErrorOutput(containing: "ready")
        return agent
    }

    var agentProcess: pid_t { agent.withLock { $0.pid } }

    /// Kills the agent and starts another one.
    func restartAgent() throws {
        try agent.withLock { agent in
            agent.send(signal: SIGKILL)
            _ = try agent.wait(timeout: .patience)
            agent = try Scene.startAgent(bus, configuration, environment, [])
        }
    }

    /// Starts an agent that takes over from this one.
    func replaceAgent() throws {
        try agent.withLock { agent in
            let next = try Scene.startAgent(bus, configuration, environment, ["--replace"])
            _ = try agent.wait(timeout: .patience)
            agent = next
        }
    }

    /// Returns once the observer is live.
    func startObserver() throws -> RunningCommand {
        let observer = try start(
            productPath("notify-wait"),
            ["--address", bus.address, "-v", "-f", "com.example.scene"],
            environment: withoutDesktop
        )
        try observer.waitForErrorOutput(containing: "the observer is live")
        return observer
    }

    /// Runs `notify-lifecycle` and returns what it prints. On a busy machine a change may take longer than it waits; running
    /// it again continues the wait.
    @discardableResult
    func lifecycle(_ arguments: String...) throws -> String {
        func ask() throws -> CommandResult {
            try run(productPath("notify-lifecycle"), ["--address", bus.address] + arguments)
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

    // MARK: - The desktop

    /// Waits until the agent knows that a process has the focus. Until a source knows who has it the command fails.
    func waitForFocus(of process: pid_t) throws {
        let isKnown = try waitUntil(timeout: .patience) {
            try run(productPath("notify-lifecycle"), ["--address", bus.address, "focus", "--json"])
                .output.contains("\"pid\":\(process),")
        }
        try #require(isKnown)
    }

    func setForeground(_ pid: pid_t) throws {
        let reply = try desktop.withLock { desktop in
            let client = try desktop ?? RawBusClient(address: bus.address)
            desktop = client
            let bytes = withUnsafeBytes(of: UInt32(pid).littleEndian) { Array($0) }
            return try client.callAgent("SetForeground", signature: "u", body: bytes)
        }
        try #require(reply.kind == .reply, "\(reply.string ?? "")")
    }

    func leaveDesktop() {
        desktop.withLock { $0 = nil }
    }

    // MARK: - What the agent says

    /// Each observer's process, state and decider. They have no order, because process IDs wrap around.
    func lines() throws -> Set<String> {
        let list = try lifecycle("list", "-q").split(separator: "\n").map { line in
            let words = line.split(separator: " ")
            // These follow names, which may contain spaces.
            let (state, decider) = (words.count - 6, words.count - 5)
            guard state > 0 else { return String(line) }
            return "\(words[0]) \(words[state]) \(words[decider])"
        }
        return Set(list)
    }

    func wait(for expected: Set<String>, timeout: Duration = .patience) throws {
        var last: Set<String> = []
        let isSo = try waitUntil(timeout: timeout) {
            last = try lines()
            return last == expected
        }
        #expect(isSo, "\(last), and not \(expected)")
    }

    /// Waits until the list of sources contains this text.
    func waitForStatus(_ text: String, timeout: Duration = .patience) throws {
        var last = ""
        let isSo = try waitUntil(timeout: timeout) {
            last = try status()
            return last.contains(Scene.withoutColumns(text))
        }
        #expect(isSo, "'\(text)' is not in:\n\(last)")
    }

    func statusHas(_ text: String) throws -> Bool { try status().contains(Scene.withoutColumns(text)) }

    private func status() throws -> String { Scene.withoutColumns(try lifecycle("status")) }

    /// How wide the columns of a table are depends on all that is in it.
    private static func withoutColumns(_ text: String) -> String {
        text.split(separator: " ").joined(separator: " ")
    }
}
