// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport

/// A session under systemd, made by Scripts/session/user-session, with a shell that runs what a test wants.
final class UserSession: Sendable {
    private static let script = packageFolder + "/Scripts/session/user-session"

    /// Why no session is possible here; nil if one is. If it then does not start, tests fail.
    static let obstacle: String? = {
        let result = try? run(UserSession.script, ["--check", BusKind.daemon.rawValue])
        return result?.status == 69 ? result?.errorOutput : nil
    }()

    let home: String
    private let process: RunningCommand

    init(_ kind: BusKind) throws {
        home = "/tmp/notifybus-launch-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"
        try run("mkdir", ["-p", "\(home)/.config/notifybus/launch.d", "\(home)/.config/systemd/user"])
        process = try start(
            UserSession.script,
            [kind.rawValue, home, "/bin/bash"],
            environment: ["DBUS_SESSION_BUS_ADDRESS": nil] as [String: String?]
        )
        let folder = try productPath("notify-agent").split(separator: "/").dropLast().joined(separator: "/")
        // Neither waiting nor counting lines starts a process: tests do both hundreds of times. A busy machine may need longer
        // for an answer than a person would wait, but less than the 25 seconds for which an agent waits for a lost answer.
        try? process.writeInput(
            """
            export PATH="/\(folder):$PATH"
            exec 2>&1 {silence}<> <(:)
            pause() { read -rt "$1" -u "$silence" || true; }
            lines() { local all=(); mapfile -t all 2>/dev/null <"$HOME/$1"; lines=${#all[@]}; }
            has() { lines "$1" 2>/dev/null && ((lines == $2)); }
            notify-lifecycle() { command notify-lifecycle --timeout 20s "$@"; }

            """
        )
    }

    deinit {
        process.closeInput()
        // The session ends when its shell exits.
        _ = try? process.wait(timeout: .patience)
        _ = try? run("rm", ["-rf", home])
    }

    /// Runs a script in the session's shell.
    ///
    /// - Returns: what it has printed.
    /// - Throws: ``TestSupportError`` if it fails, or takes too long.
    @discardableResult
    func shell(_ script: String, timeout: Duration = .patience) throws -> String {
        let mark = "mark-\(UInt32.random(in: 0...UInt32.max))"
        try process.writeInput("echo \(mark)+\n{ \(script)\n}; code=$?; echo \"\(mark)=$code=\"\n")
        let all = try process.waitForOutput(containing: "\(mark)=", timeout: timeout)
        guard let begin = all.range(ofText: "\(mark)+\n"), let end = all.range(ofText: "\(mark)=") else {
            throw TestSupportError("The shell has ended: \(all)")
        }
        let text = String(all[begin.upperBound..<end.lowerBound])
        let status = all[end.upperBound...].prefix { $0 != "=" }
        guard status == "0" else { throw TestSupportError("the shell says \(status) to '\(script)': \(text)") }
        return text
    }

    /// Writes an entry of launch.d.
    func entry(_ name: String, _ lines: String...) throws { try entry(name, lines) }

    func entry(_ name: String, _ lines: [String]) throws {
        try write("\(home)/.config/notifybus/launch.d/\(name).conf", lines)
    }

    /// Writes the unit `job.service`, which runs a shell script once.
    func job(_ script: String) throws {
        try unit("job.service", "[Service]", "Type=oneshot", "ExecStart=/bin/sh -c '\(script)'")
    }

    /// Writes a unit for the user manager.
    func unit(_ name: String, _ lines: String...) throws { try unit(name, lines) }

    /// Writes the unit of the agent, which may be restarted as often as a test likes, and for which what an agent leaves is
    /// kept meanwhile.
    ///
    /// - Parameter settings: how it is started, unless in the usual way.
    func agentUnit(_ settings: String...) throws {
        let usual = ["ExecStart=\(try productPath("notify-agent"))", "StandardError=append:%h/agent.log"]
        try unit(
            "notify-agent.service",
            ["[Unit]", "StartLimitIntervalSec=0", "[Service]", "Type=dbus", "BusName=org.notifybus.Agent1"]
                + ["FileDescriptorStoreMax=2"] + (settings.isEmpty ? usual : settings)
        )
    }

    private func unit(_ name: String, _ lines: [String]) throws {
        try write("\(home)/.config/systemd/user/\(name)", lines)
        try shell("systemctl --user daemon-reload")
    }

    private func write(_ path: String, _ lines: [String]) throws {
        try save(lines.map { $0 + "\n" }.joined(), toFile: path)
    }

    /// Starts an agent, and returns once it hears the names of all entries.
    ///
    /// - Parameter environment: assignments, as the shell takes them before a command.
    func startAgent(_ environment: String = "") throws {
        try shell("\(environment) notify-agent >>\"$HOME/agent.log\" 2>&1 & agent=$!")
        // No entries could also mean that there is no agent.
        let bus = "busctl --user call org.freedesktop.DBus / org.freedesktop.DBus"
        try until("[[ $(\(bus) GetConnectionUnixProcessID s org.notifybus.Agent1) == \"u $agent\" ]]")
        try until("notify-lifecycle launches -q >\"$HOME/list\" && ! grep -q waking \"$HOME/list\"")
    }

    /// Waits until a shell condition is true.
    ///
    /// - Parameter explanation: a command that says what is missing if it does not become true.
    func until(_ condition: String, orSay explanation: String = ":", timeout: Int = 120) throws {
        try shell(
            """
            end=$((SECONDS + \(timeout)))
            until { \(condition); } 2>/dev/null || ((SECONDS >= end)); do pause 0.05; done
            ((SECONDS < end)) || { \(condition); } ||
              { notify-lifecycle launches -v; tail -n +1 "$HOME"/agent*log; \(explanation); false; }
            """,
            timeout: .seconds(timeout + 30)
        )
    }

    /// The fields of an entry, from `notify-lifecycle launches --json`.
    func field(_ field: String, of entry: String) throws -> String {
        let script =
            "notify-lifecycle launches --json | sed -n 's/.*\"name\":\"\(entry)\".*\"\(field)\":\"\\{0,1\\}\\([^\",}]*\\).*/\\1/p'"
        return String(try shell(script).prefix { $0 != "\n" })
    }

    func waitFor(_ state: String, of entry: String) throws {
        try until("notify-lifecycle launches -q | grep -q '^\(entry) .* \(state) '")
    }

    /// How many times the agent has gone to sleep.
    func agentWakeUps() throws -> Int {
        let sum = "awk '/^voluntary_ctxt/ { sum += $2 } END { print sum }' /proc/$agent/task/*/status"
        return Int(try shell(sum).filter(\.isNumber)) ?? 0
    }

    /// Whether the agent sleeps through what a script does.
    ///
    /// Repeated, because the agent may still have earlier work to do. An agent that the script wakes never passes.
    func agentSleeps(through script: String) throws -> Bool {
        try waitUntil {
            let before = try agentWakeUps()
            try passTime("2s")
            guard try agentWakeUps() == before else { return false }
            try shell(script)
            return try agentWakeUps() == before
        }
    }

    /// The number of lines of a file in the home folder.
    func lines(_ file: String) throws -> Int {
        Int(try shell("cat \"$HOME/\(file)\" 2>/dev/null | wc -l").filter(\.isNumber)) ?? -1
    }
}

extension String {
    fileprivate func range(ofText text: String) -> Range<String.Index>? {
        guard let start = utf8.indices.first(where: { utf8[$0...].starts(with: text.utf8) }) else { return nil }
        return start..<utf8.index(start, offsetBy: text.utf8.count)
    }
}
