// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// What a program hears in a sandbox, with bubblewrap and xdg-dbus-proxy as Flatpak uses them.
@Suite(.enabled(if: FlatpakSandbox.obstacle == nil, "\(FlatpakSandbox.obstacle ?? "")"))
struct HearingTests {
    @Test(arguments: busKinds)
    func `with the permission a sandboxed program hears strangers, exactly once and in order`(kind: BusKind) throws {
        let scene = try RelayScene(kind)
        let sandbox = try scene.makeSandbox()
        let names = (1...1_000).map { "com.example.number.\($0)" } + ["com.example.end"]
        let byPrefix = try scene.startWaiting("-f", "com.example.*", in: sandbox)
        let byName = try scene.startWaiting("-f", "com.example.number.7", "com.example.end", in: sandbox)
        try scene.post(names)
        for observer in [byPrefix, byName] {
            try observer.waitForOutput(containing: "com.example.end\n")
            observer.send(signal: SIGTERM)
        }
        #expect(try byPrefix.wait().lines == names)
        #expect(try byName.wait().lines == ["com.example.number.7", "com.example.end"])
        withExtendedLifetime(sandbox) {}
    }

    @Test(arguments: busKinds)
    func `which program has the focus is nothing for a sandbox`(kind: BusKind) throws {
        let scene = try RelayScene(kind)
        let sandbox = try scene.makeSandbox()
        let byPrefix = try scene.startWaiting("-f", "org.notifybus.session.*", in: sandbox)
        try scene.post(["org.notifybus.session.focus", "org.notifybus.session.end"])
        try byPrefix.waitForOutput(containing: "org.notifybus.session.end\n")
        byPrefix.send(signal: SIGTERM)
        #expect(try byPrefix.wait().lines == ["org.notifybus.session.end"])
        withExtendedLifetime(sandbox) {}
    }

    @Test(arguments: busKinds)
    func `posts of the sandbox itself are heard inside once, and outside`(kind: BusKind) throws {
        let scene = try RelayScene(kind)
        let sandbox = try scene.makeSandbox()
        let outside = Recorder<NotifyName>()
        let observation = try scene.poster.addObserver(matching: .prefix("com.example."), timeout: .seconds(25)) {
            outside.append($0)
        }
        let post = "\(shellWord(try productPath("notify-post"))) com.example.a com.example.b"
        let observer = try scene.startWaiting("-f", "com.example.a", "com.example.b", "--then", post, in: sandbox)
        try observer.waitForOutputLines(2)
        try scene.post(["com.example.a"])
        #expect(try observer.waitForOutputLines(3) == ["com.example.a", "com.example.b", "com.example.a"])
        #expect(outside.wait(forCount: 3))
        #expect(outside.elements.map(\.string) == ["com.example.a", "com.example.b", "com.example.a"])
        observation.cancel()
        withExtendedLifetime(sandbox) {}
    }

    @Test(.serialized, arguments: busKinds)
    func `a center behind the proxy recognizes its own posts, and synchronize covers all earlier ones`(
        kind: BusKind
    ) async throws {
        try handOver(kind.rawValue, to: "own-posts")
        await #expect(processExitsWith: .success) {
            let kind = try BusKind.handedOver(to: "own-posts")
            setenv("NOTIFYBUS_RELAY", "yes", 1)
            let scene = try RelayScene(kind)
            let sandbox = try scene.makeSandbox()
            let center = NotifyCenter(bus: .address(sandbox.busAddress))
            let (all, foreign) = (Recorder<NotifyName>(), Recorder<NotifyName>())
            let first = try center.addObserver(for: "com.example.a", timeout: .seconds(25)) { all.append($0) }
            let second = try center.addObserver(for: "com.example.a", ignoringOwnPosts: true, timeout: .seconds(25)) {
                foreign.append($0)
            }
            for _ in 0..<100 {
                try center.postOnceConnected("com.example.a")
                try center.synchronize(timeout: nil)
                try scene.post(["com.example.a"])
            }
            try center.barrier(timeout: .patience)
            #expect(all.count == 200)
            #expect(foreign.count == 100)
            #expect(center.obstacleToHearing == nil)
            first.cancel()
            second.cancel()
            withExtendedLifetime(sandbox) {}
        }
    }

    @Test(arguments: busKinds)
    func `what a program no longer observes is not passed on`(kind: BusKind) throws {
        let scene = try RelayScene(kind)
        let sandbox = try scene.makeSandbox()
        let program = try RawBusClient(address: sandbox.busAddress)
        func call(_ member: String, _ signature: String = "", _ body: [UInt8] = []) throws {
            let reply = try program.call(
                destination: "org.notifybus.Relay1",
                path: "/org/notifybus/Relay1",
                interface: "org.notifybus.Relay1",
                member: member,
                signature: signature,
                body: body
            )
            try #require(reply.kind == .reply, "\(member): \(reply.string ?? "")")
        }
        var names = RawBody()
        names.append(["com.example.a"])
        names.append([])
        try call("Register", "a{sv}", [0, 0, 0, 0, 0, 0, 0, 0])
        try call("AddNames", "asas", names.bytes)
        try call("RemoveNames", "asas", names.bytes)
        try scene.post(["com.example.a"])
        // It is answered once the program has answered everything passed on, and this program answers nothing.
        try call("Synchronize")
        withExtendedLifetime(sandbox) {}
    }

    @Test(.enabled(if: Stranger.unavailable == nil, "\(Stranger.unavailable ?? "")"), arguments: busKinds)
    func `a forged name of another user is not heard`(kind: BusKind) throws {
        let scene = try RelayScene(kind)
        let sandbox = try scene.makeSandbox()
        let observer = try scene.startWaiting("-f", "*", in: sandbox)
        let stranger = try Stranger(address: scene.bus.address, .stays)
        for (name, escaped) in [("user.uid.0.x", "user.uid._30.x"), ("com.example.end", "com.example.end")] {
            try stranger.client.emitSignal(
                path: "/org/notifybus",
                interface: "org.notifybus.n.\(escaped)",
                member: "Posted",
                signature: "s",
                body: RawBusClient.stringBody(name)
            )
        }
        try observer.waitForOutput(containing: "com.example.end\n")
        try scene.post(["user.uid.0.x"])
        #expect(try observer.waitForOutputLines(2) == ["com.example.end", "user.uid.0.x"])
        withExtendedLifetime(sandbox) {}
    }

    @Test(arguments: busKinds)
    func `after the agent was killed and is back, each name is delivered once, and later posts are heard`(
        kind: BusKind
    ) throws {
        let scene = try RelayScene(kind)
        let sandbox = try scene.makeSandbox()
        let observer = try scene.startWaiting("-f", "com.example.a", "com.example.b", in: sandbox)
        try scene.post(["com.example.a"])
        try observer.waitForOutputLines(1)
        try scene.restartAgent()
        let lines = try observer.waitForOutputLines(3)
        #expect(lines[0] == "com.example.a" && Set(lines[1...]) == ["com.example.a", "com.example.b"])
        try scene.post(["com.example.b", "com.example.a"])
        #expect(try observer.waitForOutputLines(5).suffix(2) == ["com.example.b", "com.example.a"])
        withExtendedLifetime(sandbox) {}
    }

    /// No program asks this agent for its relay, as if the bus could not start one.
    @Test(arguments: busKinds)
    func `after another agent took over, each name is delivered once, and later posts are heard`(kind: BusKind) throws {
        let scene = try RelayScene(kind)
        let sandbox = try scene.makeSandbox()
        let observer = try scene.startWaiting("-f", "com.example.a", "com.example.b", in: sandbox)
        for round in 1...3 {
            try scene.replaceAgent()
            let missed = try observer.waitForOutputLines(3 * round - 1).suffix(2)
            #expect(Set(missed) == ["com.example.a", "com.example.b"])
            try scene.post(["com.example.a"])
            #expect(try observer.waitForOutputLines(3 * round).last == "com.example.a")
        }
        withExtendedLifetime(sandbox) {}
    }

    /// A program that begins while there is none finds no relay, takes itself for live, and hears nothing, unless the bus starts
    /// one.
    @Test(arguments: busKinds)
    func `while agents take over from each other there is always a relay`(kind: BusKind) throws {
        let scene = try RelayScene(kind)
        let sandbox = try scene.makeSandbox()
        let observer = try scene.startWaiting("-f", "com.example.a", in: sandbox)
        let owners = try OwnerWatch(of: "org.notifybus.Relay1", on: scene.bus)
        for round in 1...3 {
            try scene.replaceAgent()
            #expect(try owners.next() != "")
            try observer.waitForOutputLines(round)
        }
        withExtendedLifetime(sandbox) {}
    }

    @Test(arguments: busKinds)
    func `of agents that take over at the same time the last one opens the relay, and no post is lost`(
        kind: BusKind
    ) throws {
        let scene = try RelayScene(kind)
        let sandbox = try scene.makeSandbox()
        let observer = try scene.startWaiting("-f", "com.example.*", in: sandbox)
        for round in 1...2 {
            try scene.replaceAgentOften()
            try scene.post(["com.example.\(round)"])
            try observer.waitForOutput(containing: "com.example.\(round)\n")
        }
        withExtendedLifetime(sandbox) {}
    }

    @Test(arguments: busKinds)
    func `a relay that loses its connection is opened again, and its programs hear on`(kind: BusKind) throws {
        let scene = try RelayScene(kind, canCutRelay: true)
        let sandbox = try scene.makeSandbox()
        let observer = try scene.startWaiting("-f", "com.example.a", in: sandbox)
        for round in 1...3 {
            scene.cutRelay()
            // It may have been posted meanwhile.
            try observer.waitForOutputLines(2 * round - 1)
            try scene.post(["com.example.a"])
            try observer.waitForOutputLines(2 * round)
        }
        withExtendedLifetime(sandbox) {}
    }

    @Test(arguments: busKinds)
    func `an agent whose successor opens no relay closes its own, and ends`(kind: BusKind) throws {
        let scene = try RelayScene(kind)
        let owners = try OwnerWatch(of: "org.notifybus.Relay1", on: scene.bus)
        try scene.replaceAgent(configuration: "relay = none\n")
        #expect(try owners.next() == "")
    }

    @Test(arguments: busKinds)
    func `no post of a prefix is lost while agents take over, and none that waits for a suspended program`(
        kind: BusKind
    ) throws {
        let scene = try RelayScene(kind)
        let sandboxes = [try scene.makeSandbox(), try scene.makeSandbox()]
        let suspended = try scene.startWaiting("-f", "com.example.*", in: sandboxes[0])
        let target = "pid:\(try scene.observerProcess())"
        try scene.lifecycle("suspend", target)
        let listening = try scene.startWaiting("-f", "com.example.*", in: sandboxes[1])
        let (posted, isOver, hasEnded) = (Recorder<String>(), Counter(), Counter())
        startThread {
            while isOver.value == 0 {
                let name = "com.example.n\(posted.count)"
                guard (try? scene.post([name])) != nil else { break }
                posted.append(name)
                usleep(500)
            }
            hasEnded.add()
        }
        for _ in 1...4 {
            let count = posted.count
            try scene.replaceAgent()
            // Some of them in peace.
            #expect(posted.wait(forCount: count + 50))
        }
        isOver.add()
        #expect(hasEnded.wait(for: 1))
        try scene.lifecycle("resume", target)
        for (who, program) in [("in the foreground", listening), ("suspended", suspended)] {
            var missing = Set(posted.elements)
            let hasAll = try waitUntil {
                missing.subtract(try program.waitForOutputLines(1))
                return missing.isEmpty
            }
            #expect(hasAll, "\(who): \(missing.sorted()) of \(posted.count)")
        }
        withExtendedLifetime(sandboxes) {}
    }

    @Test(arguments: busKinds)
    func `if the configuration forbids the relay, the program says so and goes on`(kind: BusKind) throws {
        let scene = try RelayScene(kind, configuration: "relay = none\n", opensRelay: false)
        let request = try scene.requestRelay()
        #expect(request.status == 1 && request.errorOutput.contains("'relay = none'"))
        let sandbox = try scene.makeSandbox()
        let observer = try scene.startWaiting("com.example.a", in: sandbox)
        try observer.waitForErrorOutput(containing: "because org.notifybus.Relay1 is not served:")
        observer.send(signal: SIGTERM)
        #expect(try observer.wait().status == 143)
        withExtendedLifetime(sandbox) {}
    }
}

/// Who owns a name of the bus, one owner after another.
private struct OwnerWatch {
    private let client: RawBusClient

    init(of name: String, on bus: PrivateBus) throws {
        client = try RawBusClient(address: bus.address)
        try client.addMatch("type='signal',sender='org.freedesktop.DBus',member='NameOwnerChanged',arg0='\(name)'")
    }

    /// - Returns: the next owner; empty if there is none.
    func next() throws -> String {
        while true {
            let message = try client.readMessage()
            if message.member == "NameOwnerChanged" { return try #require(message.strings?.last) }
        }
    }
}
