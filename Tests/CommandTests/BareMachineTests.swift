// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyBus
import TestSupport
import Testing

/// The commands where something is missing that nearly every machine has.
@Suite struct BareMachineTests {
    @Test(.enabled(if: geteuid() == 0, "only root can hide /proc"), arguments: busKinds)
    func `without /proc the commands work`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let script = """
            mount -t tmpfs none /proc || exit 77
            notify-post com.example.a && notify-wait -t 10 com.example.a --then 'notify-post com.example.a'
            """
        let result = try TestSupport.run("unshare", ["-m", "bash", "-c", script], environment: bus.environment())
        if result.status == 77 { return }
        #expect(result.status == 0)
        #expect(result.output == "com.example.a\n" && result.errorOutput == "")
    }

    @Test(arguments: busKinds)
    func `without descriptors they say what can't be made`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        // 0 to 2, and what each number of more is spent on; in the end there are enough.
        var reasons: Set<String> = []
        for count in 3...12 {
            let result = try bus.script("ulimit -n \(count); exec notify-wait -t 0 com.example.a")
            if result.status == 2 { break }
            // So few that the dynamic loader has not enough.
            if result.status == 127 { continue }
            #expect(result.status == 1 || result.status == 69, "\(count): \(result.status)")
            #expect(result.errorOutput.hasPrefix("notify-wait: "), "\(count): \(result.errorOutput)")
            reasons.insert(result.errorOutput)
        }
        #expect(reasons.contains { $0.contains("annot create an eventfd: Too many open files") }, "\(reasons)")
    }
}
