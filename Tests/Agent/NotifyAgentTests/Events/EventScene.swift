// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// A private bus, and an agent that may run in namespaces of its own, so that what happens there affects nothing else.
final class EventScene: Sendable {
    static let mayUnshare = canUnshareMounts && isInstalled("nsenter")

    let bus: PrivateBus
    let center: NotifyCenter
    let folder: TemporaryFolder
    private let agent: RunningCommand

    /// - Parameter namespaces: options of unshare(1).
    init(_ kind: BusKind, _ namespaces: [String] = [], configuration: String = "", environment: [String: String?] = [:])
        throws
    {
        bus = try PrivateBus(kind)
        center = NotifyCenter(bus: .address(bus.address))
        folder = try TemporaryFolder()
        let command = try [productPath("notify-agent"), "--address", bus.address, "--config", "/dev/stdin"]
        let all = namespaces.isEmpty ? command : ["unshare"] + namespaces + ["--"] + command
        agent = try start(
            all[0],
            Array(all.dropFirst()),
            environment: withoutDesktop.merging(environment) { $1 }
        )
        try agent.writeInput(configuration.replacing("FOLDER", with: folder.path))
        agent.closeInput()
        try agent.waitForErrorOutput(containing: "ready")
    }

    var process: pid_t { agent.pid }

    /// Stops the agent until it gets SIGCONT.
    func pause() throws {
        kill(process, SIGSTOP)
        try #require(waitUntil { processState(process) == "T" })
    }

    /// Runs a script in the agent's namespaces.
    func inside(_ namespaces: String..., script: String) throws {
        let result = try run("nsenter", ["-t", "\(agent.pid)"] + namespaces + ["--", "sh", "-ec", script])
        try #require(result.status == 0, "\(script): \(result.errorOutput)")
    }

    func shell(_ script: String) throws {
        let result = try run("sh", ["-ec", "cd \(shellWord(folder.path)); \(script)"])
        try #require(result.status == 0, "\(script): \(result.errorOutput)")
    }

    /// Records what is heard of a name, until the observation is cancelled.
    func observe(_ name: NotifyName) throws -> (heard: Counter, observation: NotifyCenter.Observation) {
        let heard = Counter()
        let observation = try center.addObserver(for: name, timeout: .seconds(25)) { _ in heard.add() }
        // The agent knows of it, and the source has reported.
        _ = try state(of: name)
        return (heard, observation)
    }

    func state(of name: NotifyName) throws -> UInt64 { try center.state(of: name, timeout: .patience) }

    /// Waits until the source of a name has reported.
    func waitUntilLive(_ name: NotifyName) throws {
        let isLive = try waitUntil {
            try status().split(separator: "\n").contains { line in
                let words = line.split(separator: " ")
                return words.firstIndex { $0 == name.string }.map { words.dropFirst($0 + 1).first == "live" } ?? false
            }
        }
        let last = try status()
        try #require(isLive, "\(last)")
    }

    func status(_ arguments: String...) throws -> String {
        let command = try run(productPath("notify-lifecycle"), ["--address", bus.address, "status"] + arguments)
        try #require(command.status == 0, "\(command.errorOutput)")
        return command.output
    }

    /// The agent's descriptors, by kind.
    var descriptors: [String] {
        openFiles(of: agent.pid).filter { file in
            ["inotify", "timerfd", "hostname", "mountinfo", "pressure"].contains { file.contains($0) }
        }.sorted()
    }
}
