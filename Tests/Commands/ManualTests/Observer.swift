// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

/// A bus with an agent, and a `notify-wait` that has registered.
final class Observer {
    let bus: PrivateBus
    private let agent: RunningCommand
    private let wait: RunningCommand
    /// The unique name of its connection.
    private(set) var name = ""

    var process: pid_t { wait.pid }
    var targets: [String] { ["pid:\(process)", name] }

    init() throws {
        bus = try PrivateBus(.daemon)
        agent = try start(productPath("notify-agent"), ["--address", bus.address, "-q"], output: .null)
        wait = try start(productPath("notify-wait"), ["--address", bus.address, "-f", "com.example.a"], output: .null)
        var line: Substring?
        let isKnown = try waitUntil(timeout: .patience) {
            let list = try run(productPath("notify-lifecycle"), ["--address", bus.address, "list", "--json"])
            line = list.output.firstRange(of: "{\"name\":\"").map { list.output[$0.upperBound...] }
            return line != nil
        }
        try #require(isKnown, "The agent does not know of notify-wait")
        name = String(line?.prefix { $0 != "\"" } ?? "")
    }
}
