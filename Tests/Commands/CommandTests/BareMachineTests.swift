// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// The commands on a machine that lacks something that nearly every machine has.
@Suite struct BareMachineTests {
    @Test(.enabled(if: canUnshareMounts, "needs root and mount namespaces, to hide /proc"), arguments: anyBusKind())
    func `without /proc the commands work`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let script = """
            mount -t tmpfs none /proc || exit 77
            notify-post com.example.a && notify-wait -t 120 com.example.a --then 'notify-post com.example.a'
            """
        let result = try TestSupport.run("unshare", ["-m", "bash", "-c", script], environment: bus.environment())
        if result.status == 77 { return }
        #expect(result.status == 0)
        #expect(result.output == "com.example.a\n" && result.errorOutput == "")
    }

    @Test(arguments: anyBusKind())
    func `without descriptors they say what they can't create`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        // 0 to 2, and more until there are enough.
        var reasons: Set<String> = []
        for count in 3...12 {
            let result = try bus.script("ulimit -n \(count); exec notify-wait -t 0 com.example.a")
            if result.status == 2 { break }
            // Not even enough for the dynamic loader.
            if result.status == 127 { continue }
            #expect(result.status == 1 || result.status == 69, "\(count): \(result.status)")
            #expect(result.errorOutput.hasPrefix("notify-wait: "), "\(count): \(result.errorOutput)")
            reasons.insert(result.errorOutput)
        }
        #expect(reasons.contains { $0.contains("annot create an eventfd: Too many open files") }, "\(reasons)")
    }

    @Test(
        .enabled(if: Bubblewrap.obstacle == nil, "\(Bubblewrap.obstacle ?? "")"),
        arguments: anyBusKind()
    )
    func `without /proc every command does its work`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let bare = Bubblewrap.arguments(without: ["proc"])
        let agent = try TestSupport.start("bwrap", bare + [productPath("notify-agent"), "--address", bus.address])
        try agent.waitForErrorOutput(containing: "ready")
        let post = try "\(shellWord(productPath("notify-post"))) --address \(shellWord(bus.address))"
        let observer = try TestSupport.run(
            "bwrap",
            bare + [
                productPath("notify-wait"), "--address", bus.address, "com.example.a", "--then",
                "\(post) com.example.a",
            ]
        )
        #expect(observer.status == 0 && observer.output == "com.example.a\n", "\(observer.errorOutput)")
        let status = try TestSupport.run(
            "bwrap",
            bare + [productPath("notify-lifecycle"), "--address", bus.address, "status"]
        )
        #expect(status.status == 0 && status.output.contains("sources:"), "\(status.errorOutput)")
    }

    @Test(arguments: ["notify-wait", "notify-post", "notify-lifecycle", "notify-agent"])
    func `a command that gets too few descriptors ends with a sentence that says so`(command: String) throws {
        let bus = try PrivateBus(.daemon)
        let arguments: [String] =
            switch command {
            case "notify-wait": ["-t", "0", "com.example.a"]
            case "notify-post": ["com.example.a"]
            case "notify-lifecycle": ["status"]
            default: []
            }
        var failures = 0
        // The command only begins if the dynamic loader can open what it needs.
        for count in 4...24 {
            let process = try TestSupport.start(
                "/bin/sh",
                ["-c", "ulimit -n $0; exec \"$@\"", "\(count)", productPath(command), "--address", bus.address]
                    + arguments
            )
            if command == "notify-agent" {
                // It prints a line in any case.
                try process.waitForErrorOutput(containing: "\n")
                process.send(signal: SIGTERM)
            }
            let result = try process.wait()
            let text = result.errorOutput
            if text.contains("Too many open files") {
                failures += 1
                #expect(result.status != 0 && text.hasPrefix("\(command): "), "\(count): \(text)")
                #expect(text.split(separator: "\n").count == 1, "\(count): \(text)")
            } else {
                #expect([0, 2, 69].contains(result.status), "\(count): \(result.status) \(text)")
            }
        }
        // These need just one, and so does the loader.
        #expect(failures > 0 || ["notify-post", "notify-lifecycle"].contains(command))
    }
}
