// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

/// `notify-wait` in a Flatpak: bubblewrap and xdg-dbus-proxy as Flatpak uses them.
@Suite(.enabled(if: FlatpakSandbox.obstacle == nil, "\(FlatpakSandbox.obstacle ?? "")"))
struct SandboxTests {
    private static let isLive = "notify-wait: the observer is live\n"
    private static let sentence =
        "notify-wait: This Flatpak lacks the permission --talk-name=org.notifybus.Relay1 in its manifest, so it hears only "
        + "names that begin with 'self.'. The machine needs NotifyBus, too.\n"

    private func startObserver(in sandbox: FlatpakSandbox, _ arguments: String...) throws -> RunningCommand {
        let observer = try sandbox.start(productPath("notify-wait"), ["-v", "com.example.a"] + arguments)
        try observer.waitForErrorOutput(containing: SandboxTests.isLive)
        return observer
    }

    @Test(arguments: anyBusKind())
    func `in a Flatpak that hides the bus notify-wait says so, once, and posts go out`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let sandbox = try FlatpakSandbox(on: bus, sockets: "x11;wayland;")
        let stranger = try bus.startWaiting(["com.example.a"])
        let observer = try startObserver(
            in: sandbox,
            "--then",
            "\(shellWord(productPath("notify-post"))) com.example.a"
        )
        #expect(try stranger.wait().output == "com.example.a\n")
        // It would have heard its own post if anybody's.
        try sandbox.waitUntilHidden()
        observer.send(signal: SIGTERM)
        let result = try observer.wait()
        #expect(result.output == "")
        #expect(result.errorOutput == SandboxTests.isLive + SandboxTests.sentence)
    }

    @Test(arguments: anyBusKind())
    func `without the permission, what needs the agent names the permission first`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let agent = try start(productPath("notify-agent"), ["--address", bus.address], environment: withoutDesktop)
        try agent.waitForErrorOutput(containing: "ready")
        let sandbox = try FlatpakSandbox(on: bus)
        let state = try sandbox.start(productPath("notify-state"), ["com.example.a"]).wait()
        #expect(state.status == 69)
        #expect(
            state.errorOutput == "notify-state: This sandbox lets its program reach no lifecycle agent: it needs the "
                + "permission --talk-name=org.notifybus.Relay1, and the machine needs NotifyBus.\n"
        )
        let top = try sandbox.start(productPath("notify-top"), ["--once", "-t", "100ms"]).wait()
        #expect(top.output.contains("Observers unknown: the lifecycle agent can't be seen from a sandbox."))
        #expect(top.errorOutput.contains("lacks the permission --talk-name=org.notifybus.Relay1"))
    }

    @Test(arguments: anyBusKind())
    func `in a sandbox --hold says that nothing waits`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let sandbox = try FlatpakSandbox(on: bus)
        let name = "org.notifybus.system.willsleep"
        let arguments = ["-t", "1s", "--hold", name, "--", "true"]
        let result = try sandbox.start(productPath("notify-wait"), arguments).wait()
        #expect(result.status == 2)
        let sentence = "nothing waits for the command: a program in a sandbox can't delay sleep or shutdown\n"
        #expect(result.errorOutput.contains("notify-wait: \(sentence)"), "\(result.errorOutput)")
        #expect(!result.errorOutput.contains("Hold"), "\(result.errorOutput)")
    }

    @Test(arguments: anyBusKind())
    func `in a sandbox of another kind whose proxy hides the relay, the permission is named first`(
        kind: BusKind
    ) throws {
        let bus = try PrivateBus(kind)
        let sandbox = try FlatpakSandbox(on: bus)
        let observer = try start(
            productPath("notify-wait"),
            ["-v", "com.example.a"],
            environment: ["DBUS_SESSION_BUS_ADDRESS": sandbox.busAddress, "NOTIFYBUS_RELAY": "yes"]
        )
        let said = try observer.waitForErrorOutput(containing: "relay = none")
        #expect(said.contains("Its sandbox must allow it to talk to that name, as --talk-name=org.notifybus.Relay1"))
        observer.send(signal: SIGTERM)
        _ = try observer.wait()
    }

    @Test(arguments: busKinds)
    func `behind a proxy that nobody has told of, it says that posts are not passed on`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let sandbox = try FlatpakSandbox(on: bus)
        let observer = try start(
            productPath("notify-wait"),
            ["com.example.a", "--then", "\(shellWord(productPath("notify-post"))) com.example.a"],
            environment: ["DBUS_SESSION_BUS_ADDRESS": sandbox.busAddress, "NOTIFYBUS_ADDRESS": nil]
        )
        let sentence =
            "notify-wait: the bus does not pass posts on: a proxy stands in front of it, and nothing that others post is "
            + "heard; see NOTIFYBUS_RELAY in notify-wait(1)\n"
        #expect(try observer.waitForErrorOutput(containing: sentence) == sentence)
        observer.send(signal: SIGTERM)
        #expect(try observer.wait().output == "", "it would have heard its own post if anybody's")
    }

    @Test(arguments: anyBusKind())
    func `in a Flatpak with the whole session bus notify-wait hears everyone, and says nothing`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let observer = try startObserver(in: FlatpakSandbox(on: bus, sockets: "x11;session-bus;wayland;"))
        #expect(try bus.run("notify-post", ["com.example.a"]).status == 0)
        let result = try observer.wait()
        #expect(result.output == "com.example.a\n")
        #expect(result.errorOutput == SandboxTests.isLive)
    }
}
