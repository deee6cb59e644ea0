// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

/// Programs that nap under a real agent, which stops them and lets them continue. A socket of this test takes sway's place.
@Suite struct NapSessionTests {
    /// A desktop with a `nap.conf`.
    private final class Desk {
        let sway: FakeSway
        let scene: Scene
        private let folder: TemporaryFolder
        private(set) var talk: FakeSway.Talk

        init(_ kind: BusKind, naps: String, environment: [String: String] = [:]) throws {
            folder = try TemporaryFolder()
            try #require(try run("mkdir", ["-p", "\(folder.path)/notifybus"]).status == 0)
            try folder.write(naps, to: "notifybus/nap.conf")
            sway = try FakeSway()
            scene = try Scene(
                kind,
                environment: [
                    "SWAYSOCK": sway.path, "WAYLAND_DISPLAY": "wayland-1", "XDG_CONFIG_HOME": folder.path,
                ].merging(environment) { $1 }
            )
            talk = try sway.accept()
            try talk.greet(focused: 0)
        }

        func restartAgent() throws {
            try scene.restartAgent()
            talk = try sway.accept()
            try talk.greet(focused: 0)
        }

        func replaceAgent() throws {
            try scene.replaceAgent()
            talk = try sway.accept()
            try talk.greet(focused: 0)
        }

        /// Gives a window the focus, and returns once the agent knows: of changes that come faster it sees only the last.
        func focus(_ process: pid_t, _ application: String = "game") throws {
            talk.focus(process, application)
            try scene.waitForFocus(of: process)
        }
    }

    /// More rounds, and figures.
    /// Keeps a processor busy that no other test wants, unless something is measured.
    private static let loop = (isLongRun ? "" : "renice -n 19 -p $$ >/dev/null; ") + "while :; do :; done"
    private static let busyLoop = ["-c", loop]

    private func waitForState(_ process: pid_t, isStopped: Bool) throws {
        let isSo = waitUntil(timeout: .patience) { (processState(process) == "T") == isStopped }
        try #require(isSo, "process \(process) is \(processState(process).map(String.init) ?? "gone")")
    }

    @Test(arguments: busKinds)
    func `a napping program is stopped, and hears each name once when it has the focus`(kind: BusKind) throws {
        let desk = try Desk(kind, naps: "[nap]\napps = mail\nafter = 50ms\nstate = frozen\n")
        let observer = try desk.scene.startObserver()
        try desk.focus(observer.pid, "mail")
        try desk.focus(1, "other")
        try waitForState(observer.pid, isStopped: true)
        try desk.scene.wait(for: ["\(observer.pid) suspended nap"])
        for _ in 0..<3 {
            try #require(
                try run(productPath("notify-post"), ["--address", desk.scene.bus.address, "com.example.scene"]).status
                    == 0
            )
        }
        try desk.focus(observer.pid, "mail")
        try waitForState(observer.pid, isStopped: false)
        try desk.scene.wait(for: ["\(observer.pid) foreground default"])
        _ = try observer.waitForOutputLines(1)
        // A second delivery of the first post would have come by now.
        try #require(
            try run(productPath("notify-post"), ["--address", desk.scene.bus.address, "com.example.scene"]).status == 0
        )
        _ = try observer.waitForOutputLines(2)
        observer.send(signal: SIGTERM)
        #expect(try observer.wait().output == "com.example.scene\ncom.example.scene\n")
    }

    @Test(arguments: busKinds, ["frozen", "suspended"])
    func `a napping program wakes up when another agent takes over`(kind: BusKind, state: String) throws {
        let desk = try Desk(kind, naps: "[nap]\napps = mail\nafter = 50ms\nstate = \(state)\n")
        let observer = try desk.scene.startObserver()
        for _ in 0..<3 {
            try desk.focus(observer.pid, "mail")
            try desk.focus(1, "other")
            try desk.scene.wait(for: ["\(observer.pid) suspended nap"])
            try desk.replaceAgent()
            try waitForState(observer.pid, isStopped: false)
            try desk.scene.wait(for: ["\(observer.pid) foreground default"])
        }
    }

    @Test func `programs that know nothing of us nap, too, with what they have started`() throws {
        let desk = try Desk(.daemon, naps: "[nap]\napps = game*\nafter = 50ms\nstate = frozen\n")
        var loops: [RunningCommand] = []
        for number in 0..<10 {
            let loop = try start("/bin/sh", NapSessionTests.busyLoop)
            loops.append(loop)
            try desk.focus(loop.pid, "game-\(number)")
        }
        let parent = try start("/bin/sh", ["-c", "sh -c '\(NapSessionTests.loop)' & echo $!; wait"])
        let child = try #require(pid_t(parent.waitForOutputLines(1)[0]))
        try desk.focus(parent.pid, "game-parent")
        try desk.focus(1, "other")
        for process in loops.map(\.pid) + [parent.pid, child] { try waitForState(process, isStopped: true) }
        for loop in loops {
            try desk.focus(loop.pid, "game-again")
            try waitForState(loop.pid, isStopped: false)
        }
        #expect(processState(child) == "T")
        #expect(try desk.scene.lifecycle("status").contains("asleep"))
        try desk.scene.lifecycle("nap", "off")
        try waitForState(child, isStopped: false)
        try waitForState(parent.pid, isStopped: false)
        kill(child, SIGKILL)
    }

    @Test func `a program is awake while what it has started has the focus, and wakes with it`() throws {
        let desk = try Desk(.daemon, naps: "[nap]\napps = game, mark\nafter = 50ms\nstate = frozen\n")
        let mark = try start("/bin/sh", NapSessionTests.busyLoop)
        let script = "sh -c 'sh -c \"echo \\$\\$; \(NapSessionTests.loop)\" & echo $$; wait' & wait"
        let parent = try start("/bin/sh", ["-c", script])
        let children = try parent.waitForOutputLines(2).map { try #require(pid_t($0)) }.sorted()
        defer { for child in children { kill(child, SIGKILL) } }
        let all = [parent.pid] + children
        try desk.focus(parent.pid)
        try desk.focus(mark.pid, "mark")
        try desk.focus(children[1], "other")
        // It has had the focus later.
        try waitForState(mark.pid, isStopped: true)
        #expect(all.allSatisfy { processState($0) != "T" })
        try desk.focus(mark.pid, "mark")
        for process in all { try waitForState(process, isStopped: true) }
        // The agent can no longer see what has started it.
        kill(children[0], SIGKILL)
        #expect(waitUntil(timeout: .patience) { processState(children[0]).map { $0 == "Z" } ?? true })
        try desk.focus(children[1], "other")
        for process in [parent.pid, children[1]] { try waitForState(process, isStopped: false) }
    }

    @Test func `ten busy programs that nap use no processor time, and each hears its names once`() throws {
        let desk = try Desk(.daemon, naps: "[nap]\napps = game*\nafter = 10ms\nstate = frozen\n")
        let games = try (0..<10).map { _ in
            try start(
                productPath("notify-wait"),
                [
                    "--address", desk.scene.bus.address, "-f", "com.example.scene", "com.example.end",
                    "--then", "echo $$ >&2; " + NapSessionTests.loop,
                ],
                environment: withoutDesktop
            )
        }
        let loops = try games.map { game in
            try #require(pid_t(game.waitForErrorOutput(containing: "\n").split(separator: "\n")[0]))
        }
        defer { for loop in loops { kill(loop, SIGKILL) } }
        for (number, game) in games.enumerated() { try desk.focus(game.pid, "game-\(number)") }
        try desk.focus(1, "other")
        for process in games.map(\.pid) + loops { try waitForState(process, isStopped: true) }
        let before = try loops.map { try processorTime(of: $0) }
        let names = Array(repeating: "com.example.scene", count: 3)
        let post = try run(productPath("notify-post"), ["--address", desk.scene.bus.address] + names)
        try #require(post.status == 0)
        #expect(try desk.scene.lifecycle("status").contains("10 programs asleep"))
        try passTime("2s")
        let used = zip(try loops.map { try processorTime(of: $0) }, before).map { $0 - $1 }
        #expect(used == Array(repeating: 0, count: 10))
        var waits: [Duration] = []
        for (number, game) in games.enumerated() {
            // This measures one change, and not the agent's limit of fifty looks a second.
            if isLongRun { usleep(50_000) }
            // Desktops move it in several steps.
            desk.talk.focus(1, "other")
            let began = ContinuousClock.now
            desk.talk.focus(game.pid, "game-\(number)")
            try waitForState(game.pid, isStopped: false)
            waits.append(ContinuousClock.now - began)
            try desk.focus(game.pid, "game-\(number)")
            #expect(try game.waitForOutputLines(1) == ["com.example.scene"])
        }
        if isLongRun {
            waits.sort()
            print(
                "ten busy programs that nap used \(used) ticks; with the focus they ran after \(waits[5]), \(waits[9])"
            )
        }
        try desk.scene.lifecycle("nap", "off")
        try desk.scene.wait(for: Set(games.map { "\($0.pid) foreground default" }))
        let end = try run(productPath("notify-post"), ["--address", desk.scene.bus.address, "com.example.end"])
        try #require(end.status == 0)
        for game in games { #expect(try game.waitForOutputLines(2) == ["com.example.scene", "com.example.end"]) }
    }

    /// In clock ticks. See proc(5).
    private func processorTime(of process: pid_t) throws -> Int {
        let text = try readFile("/proc/\(process)/stat")
        let fields = try #require(text.split(separator: ")").last).split(separator: " ")
        return try #require(Int(fields[11])) + #require(Int(fields[12]))
    }

    @Test func `nobody stays stopped when the agent is killed, nor when it ends`() throws {
        let desk = try Desk(.daemon, naps: "[nap]\napps = game\nafter = 10ms\nstate = frozen\n")
        let loops = try (0..<3).map { _ in try start("/bin/sh", NapSessionTests.busyLoop) }
        let rounds = isLongRun ? 100 : 10
        for round in 0..<rounds {
            if round > 0 { try desk.restartAgent() }
            for loop in loops { try desk.focus(loop.pid) }
            try desk.focus(1, "other")
            for loop in loops { try waitForState(loop.pid, isStopped: true) }
            kill(desk.scene.agentProcess, round == 0 ? SIGTERM : SIGKILL)
            for loop in loops { try waitForState(loop.pid, isStopped: false) }
        }
        if isLongRun { print("\(rounds) agents were killed, and everybody went on") }
    }

    @Test func `the process that would let programs continue has a successor when it is killed`() throws {
        let desk = try Desk(.daemon, naps: "[nap]\napps = game\nafter = 10ms\nstate = frozen\n")
        let loop = try start("/bin/sh", NapSessionTests.busyLoop)
        try desk.focus(loop.pid)
        try desk.focus(1, "other")
        try waitForState(loop.pid, isStopped: true)
        var last: pid_t?
        for _ in 0..<2 {
            try #require(
                waitUntil(timeout: .patience) {
                    let guards = children(of: desk.scene.agentProcess, named: "notify-thaw")
                    return guards.count == 1 && guards[0] != last
                }
            )
            last = children(of: desk.scene.agentProcess, named: "notify-thaw").first
            kill(try #require(last), SIGKILL)
        }
        try #require(
            waitUntil(timeout: .patience) {
                let guards = children(of: desk.scene.agentProcess, named: "notify-thaw")
                return guards.count == 1 && guards[0] != last
            }
        )
        #expect(processState(loop.pid) == "T")
        kill(desk.scene.agentProcess, SIGKILL)
        try waitForState(loop.pid, isStopped: false)
    }

    @Test func `a program that is stopped follows a signal, and naps no more`() throws {
        let desk = try Desk(.daemon, naps: "[nap]\napps = game\nafter = 10ms\nstate = frozen\n")
        // It starts no programs: until those are executed, a shell may wait for them in a state that no signal stops.
        let script = "trap 'exit 0' TERM; exec {pipe}<> <(:); while :; do read -rt 0.05 -u $pipe; done"
        let loop = try start("bash", ["-c", script])
        try desk.focus(loop.pid)
        try desk.focus(1, "other")
        try waitForState(loop.pid, isStopped: true)
        kill(loop.pid, SIGTERM)
        #expect(try loop.wait().status == 0)
    }

    /// Speaks PulseAudio's protocol at the socket `$1`: the process `$2` plays until a line comes.
    private static let soundServer = """
        import contextlib, os, socket, struct, sys, threading
        def number(n): return b"L" + struct.pack(">I", n)
        def text(t): return b"t" + t.encode() + b"\\0"
        def stream():
            data = sys.argv[2].encode() + b"\\0"
            properties = b"P" + text("application.process.id") + number(len(data)) + b"x"
            properties += struct.pack(">I", len(data)) + data + b"N"
            volumes = b"a\\3\\1" + struct.pack(">I", 44100) + b"m\\1\\0v\\1" + struct.pack(">I", 65536)
            body = number(1) + text("x") + number(0) + number(0) + number(0) + volumes
            return body + (b"U" + bytes(8)) * 2 + b"N" + text("x") + b"0" + properties + b"011"
        plays, lock, client = True, threading.Lock(), None
        def send(command, question, body=b""):
            body = number(command) + number(question) + body
            client.sendall(struct.pack(">IIIII", len(body), 0xffffffff, 0, 0, 0) + body)
        def serve():
            global client
            while True:
                client, _ = server.accept()
                with contextlib.suppress(OSError):
                    while header := client.recv(20, socket.MSG_WAITALL):
                        body = client.recv(struct.unpack(">I", header[:4])[0], socket.MSG_WAITALL)
                        command, question = struct.unpack(">xIxI", body[:10])
                        with lock:
                            if command == 30: send(2, question, stream() if plays else b"")
                            else: send(2, question, number(20) if command == 8 else b"")
                            print(command, flush=True)
        server = socket.socket(socket.AF_UNIX)
        server.bind(sys.argv[1])
        server.listen()
        print("ready", flush=True)
        threading.Thread(target=serve, daemon=True).start()
        sys.stdin.readline()
        with lock:
            plays = False
            send(66, 0xffffffff, number(0x22) + number(1))
        sys.stdin.readline()
        """

    /// The player is a child of the program, as a browser's is.
    @Test func `a program that plays sound stays awake, and naps when it has stopped`() throws {
        let folder = try TemporaryFolder()
        let loop = try start("/bin/sh", ["-c", "sleep infinity & echo $!; wait"])
        let player = try #require(pid_t(loop.waitForOutputLines(1)[0]))
        defer { kill(player, SIGKILL) }
        let server = try start(
            python,
            ["-c", NapSessionTests.soundServer, folder.path + "/sound", "\(player)"]
        )
        _ = try server.waitForOutputLines(1)
        let desk = try Desk(
            .daemon,
            naps: "[nap]\napps = game\nafter = 50ms\nstate = frozen\nkeep = audio\n",
            environment: ["PULSE_SERVER": "unix:" + folder.path + "/sound"]
        )
        // On a busy machine it may be too slow to answer: then the program naps until it has the focus again.
        let staysAwake = try waitUntil {
            try desk.focus(loop.pid)
            let before = try server.waitForOutputLines(1)
            try desk.focus(1, "other")
            // It is asked once the program would nap, and not before.
            let questions = ["8", "9", "35", "30"]
            _ = try waitUntil {
                let count = try server.waitForOutputLines(1).count
                return count >= before.count + questions.count || processState(loop.pid) == "T"
            }
            // Now the agent has the answer.
            try desk.scene.lifecycle("status")
            return try server.waitForOutputLines(1) == before + questions && processState(loop.pid) != "T"
        }
        #expect(staysAwake)
        try server.writeInput("stop\n")
        try waitForState(loop.pid, isStopped: true)
    }

    @Test func `a terminal in which something runs stays awake`() throws {
        let desk = try Desk(.daemon, naps: "[nap]\napps = term*\nafter = 50ms\nstate = frozen\n")
        // Each opens a terminal: one for a program, one for a shell with a job, and one for a shell that waits.
        let job = "exec sh -i"
        let terminals = try ["exec cat", job, job].map {
            try start("script", ["-q", "-c", $0, "/dev/null"])
        }
        for terminal in terminals.dropFirst() {
            // The terminal shows the input, too.
            try terminal.writeInput("echo re''ady\n")
            try terminal.waitForOutput(containing: "ready")
        }
        try terminals[1].writeInput("cat\n")
        for (index, terminal) in terminals.enumerated() {
            try #require(waitUntil(timeout: .patience) { isAtWork(terminal.pid) == (index < 2) })
            try desk.focus(terminal.pid, "terminal-\(index)")
        }
        try desk.focus(1, "other")
        try waitForState(terminals[2].pid, isStopped: true)
        #expect(processState(terminals[0].pid) != "T" && processState(terminals[1].pid) != "T")
    }

    /// Whether something other than a waiting shell is in the foreground of the terminal of a process's child; nil if there is none.
    private func isAtWork(_ pid: pid_t) -> Bool? {
        // The list ends without a line feed, which is an error to read.
        let find = "read child _ </proc/$0/task/$0/children; cat /proc/$child/comm /proc/$child/stat"
        guard let text = try? run("/bin/sh", ["-c", find, String(pid)]).output, !text.isEmpty else { return nil }
        let fields = text.split(separator: ")").last?.split(separator: " ").map { String($0) } ?? []
        return !text.hasPrefix("sh\n") || fields.count > 5 && fields[2] != fields[5]
    }
}
