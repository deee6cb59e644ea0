// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// How the commands find their bus, and how long that may take.
@Suite struct ConnectingTests {
    @Test(arguments: busKinds)
    func `-t limits the whole time, even if the bus hangs`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        bus.stop()
        defer { bus.resume() }
        let result = try run(
            productPath("notify-wait"),
            ["--address", bus.address, "-t", "1s", "a"],
            timeout: .patience
        )
        #expect(result.status == 2)
        #expect(result.errorOutput == "notify-wait: timed out after 0 notifications; the bus did not answer\n")
        let quiet = try run(productPath("notify-wait"), ["--address", bus.address, "-q", "-t", "0.1", "a"])
        #expect(quiet.status == 2 && quiet.errorOutput == "")
    }

    /// The first attempt to connect takes ten seconds.
    @Test(arguments: anyBusKind())
    func `a bus that hangs is neither called absent nor taken for a silent agent`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        bus.stop()
        defer { bus.resume() }
        let waiting = try start(productPath("notify-wait"), ["--address", bus.address, "--retry", "-t", "11s", "a"])
        for verb in ["list", "watch"] {
            let result = try run(productPath("notify-lifecycle"), ["--address", bus.address, "-t", "1s", verb])
            #expect(result.status == 2)
            #expect(result.errorOutput == "notify-lifecycle: the bus did not accept the connection in time\n")
        }
        let result = try waiting.wait()
        #expect(result.status == 2)
        let end = "notify-wait: timed out after 0 notifications; the bus did not answer\n"
        #expect(result.errorOutput.hasSuffix(end), "\(result.errorOutput)")
    }

    @Test(arguments: anyBusKind(), ["notify-post a", "notify-state a", "notify-wait -t 1s a"])
    func `too few descriptors are named, whichever is missing`(kind: BusKind, command: String) throws {
        let bus = try PrivateBus(kind)
        for count in 4...12 {
            let result = try bus.script("ulimit -n \(count); exec \(command)")
            if [0, 2].contains(result.status) { return }
            // notify-state has found no agent, and so the bus.
            if result.status == 69, result.errorOutput.contains("agent") { return }
            #expect(result.status == 1, "\(count)")
            #expect(result.errorOutput.contains("Too many open files"), "\(count): \(result.errorOutput)")
        }
        Issue.record("\(command) takes more than 12 descriptors.")
    }

    @Test(arguments: busKinds)
    func `-t limits the whole time of notify-post, even if the bus hangs`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        bus.stop()
        defer { bus.resume() }
        for names in [["a"], ["-"]] {
            let result = try run(
                productPath("notify-post"),
                ["--address", bus.address, "-t", "1s"] + names,
                input: "a\n",
                timeout: .patience
            )
            #expect(result.status == 2)
            #expect(result.errorOutput.hasPrefix("notify-post: "))
            #expect(result.errorOutput.contains(" in time"), "\(result.errorOutput)")
        }
        let hanging = try HangingBus()
        let silent = try run(
            productPath("notify-post"),
            ["--address", hanging.address, "-t", "500ms", "a"],
            timeout: .patience
        )
        #expect(silent.status == 2)
    }

    @Test(arguments: [[], ["--retry"]])
    func `-t limits the whole time if the bus accepts connections and never answers`(options: [String]) throws {
        let hanging = try HangingBus()
        let result = try run(
            productPath("notify-wait"),
            ["--address", hanging.address, "-t", "500ms", "a"] + options,
            timeout: .patience
        )
        #expect(result.status == 2)
    }

    @Test(arguments: busKinds)
    func `--retry waits for a bus that is not available yet, and then hears posts`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        bus.kill()
        let ready = try Pipe()
        let waiting = try start(
            productPath("notify-wait"),
            ["--address", bus.address, "--retry", "--ready-fd", "3", "a"],
            descriptors: [3: ready.writeEnd]
        )
        ready.closeWriteEnd()
        let words = try waiting.waitForErrorOutput(containing: "Waiting for the bus.\n")
        #expect(words.contains("cannot be reached"))
        try bus.restart()
        #expect(try ready.read() == "\n")
        try bus.makeCenter().postOnceConnected("a")
        let result = try waiting.wait()
        #expect(result.status == 0 && result.output == "a\n")
        #expect(result.errorOutput.split(separator: "\n").count == 1, "it is said once")
    }

    @Test func `a timeout and a signal end --retry`() throws {
        let options = ["--address", nowhere, "--retry", "a"]
        #expect(try run(productPath("notify-wait"), options + ["-t", "0.2"]).status == 2)
        let waiting = try start(productPath("notify-wait"), options)
        try waiting.waitForErrorOutput(containing: "Waiting for the bus")
        waiting.send(signal: SIGTERM)
        let result = try waiting.wait()
        #expect(result.status == 143 && !result.exitedNormally)
    }

    @Test(arguments: busKinds)
    func `NOTIFYBUS_ADDRESS selects the bus, unless an option does`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let other = try PrivateBus(kind)
        let environment: [String: String?] = [
            "NOTIFYBUS_ADDRESS": bus.address, "DBUS_SESSION_BUS_ADDRESS": other.address,
        ]
        for (options, heard) in [([], bus), (["--session"], other), (["--address", other.address], other)] {
            let waiting = try heard.startWaiting(["a"])
            #expect(try run(productPath("notify-post"), options + ["a"], environment: environment).status == 0)
            #expect(try waiting.wait().status == 0)
        }
        let system: [String: String?] = [
            "NOTIFYBUS_ADDRESS": "system", "DBUS_SYSTEM_BUS_ADDRESS": bus.address, "DBUS_SESSION_BUS_ADDRESS": nowhere,
        ]
        let waiting = try bus.startWaiting(["a"])
        #expect(try run(productPath("notify-post"), ["a"], environment: system).status == 0)
        #expect(try waiting.wait().status == 0)
    }

    /// Runs a command where nothing says where the session bus is, and a bus is in the place where systemd puts it.
    private func runWithoutAddress(
        _ bus: PrivateBus,
        _ command: String,
        _ arguments: [String]
    ) throws -> CommandResult {
        let folder = bus.socketPath.dropLast("/bus".count)
        let runtime = "/run/user/\(geteuid())"
        var sandbox: [String] = Bubblewrap.arguments(without: ["run"]).dropLast()
        sandbox += ["--tmpfs", "/run", "--dir", runtime, "--bind", String(folder), runtime, "--"]
        sandbox += [try productPath(command)]
        return try run(
            "bwrap",
            sandbox + arguments,
            environment: [
                "DBUS_SESSION_BUS_ADDRESS": nil, "XDG_RUNTIME_DIR": nil, "NOTIFYBUS_ADDRESS": nil,
            ],
            timeout: .patience
        )
    }

    @Test(.enabled(if: Bubblewrap.obstacle == nil, "\(Bubblewrap.obstacle ?? "")"), arguments: busKinds)
    func `where nothing says where the session bus is, it is found in /run/user, if it belongs to the user`(
        kind: BusKind
    ) throws {
        let bus = try PrivateBus(kind)
        let waiting = try bus.startWaiting(["a"])
        #expect(try runWithoutAddress(bus, "notify-post", ["a"]).status == 0)
        #expect(try waiting.wait().output == "a\n")
        guard geteuid() == 0 else { return }
        // Another user's bus is not used.
        try #require(chown(bus.socketPath, 65_534, 65_534) == 0)
        let result = try runWithoutAddress(bus, "notify-post", ["a"])
        #expect(result.status == 69)
        #expect(result.errorOutput.contains("nor /run/user/0/bus. User 0 must be logged in, or linger"))
    }

    @Test(arguments: busKinds)
    func `a program does not even hear its own posts of a name that the policy denies, and hears other names`(
        kind: BusKind
    ) throws {
        let deny = #"<deny send_type="signal" send_interface="org.notifybus.n.com.example.denied"/>"#
        let policy = PrivateBus.openPolicy + "<policy context=\"mandatory\">\(deny)</policy>"
        let bus = try PrivateBus(kind, policy: policy)
        let script = #"notify-wait "$1" -t "$2" --then "notify-post $1""#
        #expect(try bus.script(script, ["com.example.denied", "2s"]).status == 2)
        #expect(try bus.script(script, ["com.example.allowed", "120s"]).status == 0)
    }

    @Test(arguments: busKinds)
    func `--all reports which names did not arrive in time`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let script = "notify-wait --all -t 3s a b c a --then 'notify-post b'"
        let result = try inTime {
            try bus.script(script)
        } unless: {
            $0.output.isEmpty
        }
        #expect(result.status == 2)
        #expect(result.errorOutput == "notify-wait: timed out after 1 notification; missing: a, c\n")
        func miss(_ options: [String]) throws -> CommandResult {
            try inTime {
                try bus.run("notify-wait", options)
            } unless: {
                $0.errorOutput.contains("the bus did not answer")
            }
        }
        let many = try miss(["--all", "-t", "1s"] + (1...14).map { "n\($0)" })
        let names = (1...10).map { "n\($0)" }.joined(separator: ", ")
        #expect(many.errorOutput == "notify-wait: timed out after 0 notifications; missing: \(names) and 4 more\n")
        let prefixes = try miss(["--all", "-t", "1s", "a.*", "b.*"])
        #expect(prefixes.errorOutput == "notify-wait: timed out after 0 notifications; missing: a.*, b.*\n")
    }
}
