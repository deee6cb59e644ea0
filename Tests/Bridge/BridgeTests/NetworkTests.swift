// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import Synchronization
import TestSupport
import Testing

/// A broker on another machine: in a network namespace of its own.
@Suite(
    .enabled(if: Mosquitto.unavailable == nil, Mosquitto.unavailable),
    .enabled(if: Network.unavailable == nil, Network.unavailable)
)
struct NetworkTests {
    /// How a network fails.
    enum Failure: String, CaseIterable {
        case linkDown = "the other end of the cable is pulled"
        case dropped = "packets are dropped on the way"
    }

    @Test("Names posted while the network is down cross once afterwards", arguments: Failure.allCases)
    func cut(failure: Failure) throws {
        let network = try Network()
        let broker = try Mosquitto(in: network)
        let lines = ["realm = home", "keepalive = 5s"]
        let here = try Machine(
            .daemon,
            ["broker = mqtt://\(network.address):\(broker.port)", "export = com.example.*"] + lines
        )
        try here.startBridge()
        // This one keeps its broker.
        let there = try Machine(.daemon, ["broker = \(broker.address)", "import = com.example.*"] + lines)
        try there.startBridge(through: network.prefix)
        let heard = try there.hear(prefixes: ["com.example."])
        try here.center.postOnceConnected("com.example.before")
        #expect(heard.wait(forCount: 1))

        try network.fail(failure)
        let names = (0..<10).map { "com.example.\($0)" }
        for name in names { try here.center.postOnceConnected(NotifyName(name)) }
        // The connection is half-open: the bridge believes that they were sent.
        let isSent = try waitUntil { try here.figure("sent") == 1 + names.count }
        #expect(isSent)
        try here.wait(connected: false)
        for _ in 0..<10 {
            for name in names { try here.center.postOnceConnected(NotifyName(name)) }
        }
        try network.mend(failure)
        // The first attempt may have been lost: TCP retries after 1, 3, 7 and 15 s.
        try here.wait(connected: true, timeout: .seconds(120))
        try here.center.postOnceConnected("com.example.last")
        #expect(heard.wait(timeout: .seconds(120)) { $0.contains("com.example.last") })
        #expect(heard.elements.sorted() == names + ["com.example.before", "com.example.last"])
    }
}

/// A cable between this machine and a network namespace; both are removed with the last reference.
final class Network: Sendable {
    /// Why there can't be one; nil if there can.
    static let unavailable: Comment? = {
        guard geteuid() == 0 else { return "Only root can make network namespaces." }
        guard isInstalled("ip") || access("/usr/sbin/ip", X_OK) == 0 else { return "iproute2 is not installed." }
        guard access("/usr/sbin/iptables", X_OK) == 0 else { return "iptables is not installed." }
        let name = "nb-try-\(getpid())"
        guard (try? shell("ip netns add \(name) && ip netns del \(name)")) != nil else {
            return "This machine allows no network namespaces."
        }
        return nil
    }()

    private let name: String
    private let number: Int
    /// The number of the last one; other processes begin elsewhere.
    private static let taken = Mutex(Int.random(in: 0..<250))
    /// What to put before a command to run it there.
    var prefix: [String] { ["ip", "netns", "exec", name] }
    /// The address at the other end.
    var address: String { "10.213.\(number).2" }

    init() throws {
        number = try Network.taken.withLock { taken in
            // What a run that was killed has left is still there.
            let free = (1...250).first { access("/sys/class/net/nbh\((taken + $0) % 250 + 1)", F_OK) != 0 }
            taken += try #require(free, "250 networks are in use")
            return taken % 250 + 1
        }
        name = "nb\(getpid())-\(number)"
        try shell(
            """
            ip netns add \(name)
            ip link add nbh\(number) type veth peer name nbt\(number) netns \(name)
            ip addr add 10.213.\(number).1/30 dev nbh\(number)
            ip link set nbh\(number) up
            ip -n \(name) addr add \(address)/30 dev nbt\(number)
            ip -n \(name) link set nbt\(number) up
            ip -n \(name) link set lo up
            """
        )
    }

    deinit {
        _ = try? shell("ip link del nbh\(number); ip netns del \(name)")
    }

    func fail(_ failure: NetworkTests.Failure) throws {
        switch failure {
        case .linkDown: try shell("ip -n \(name) link set nbt\(number) down")
        case .dropped: try shell("ip netns exec \(name) iptables -A INPUT -i nbt\(number) -j DROP")
        }
    }

    func mend(_ failure: NetworkTests.Failure) throws {
        switch failure {
        case .linkDown: try shell("ip -n \(name) link set nbt\(number) up")
        case .dropped: try shell("ip netns exec \(name) iptables -D INPUT -i nbt\(number) -j DROP")
        }
    }
}

@discardableResult
private func shell(_ script: String) throws -> String {
    let result = try run("bash", ["-ec", "PATH=$PATH:/usr/sbin:/sbin; \(script)"])
    guard result.status == 0 else { throw TestSupportError("\(script): \(result.errorOutput)") }
    return result.output
}
