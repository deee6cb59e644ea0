// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import NotifyNames
import TestSupport
import Testing

@testable import NotifyAgent

/// The loop on which the agent lives: everybody gets a turn, whatever others do.
@Suite struct LoopTests {
    /// Waits for a file descriptor.
    private static func pipe() throws -> (end: Int32, other: Int32) {
        var ends: [Int32] = [-1, -1]
        try #require(Glibc.pipe(&ends) == 0)
        return (ends[0], ends[1])
    }

    @Test func `what is put off runs after everybody's turn, and what that puts off in the next round`() throws {
        let thread = try EventThread(name: "loop")
        let (ready, other) = try LoopTests.pipe()
        defer { for end in [ready, other] { close(end) } }
        let order = Recorder<String>()
        thread.perform { loop in
            loop.soon {
                order.append("put off")
                loop.soon { order.append("put off again") }
            }
            loop.watch(ready) {
                loop.forget(ready)
                order.append("descriptor")
            }
            _ = loop.at(.now) { order.append("timer") }
            // The work and the descriptor are there when the next round begins.
            loop.soon { write(other, "x", 1) }
            thread.perform { _ in order.append("work") }
        }
        try #require(order.wait(forCount: 5))
        #expect(order.elements == ["timer", "put off", "work", "descriptor", "put off again"])
        thread.stop(waits: true)
    }

    @Test func `nothing arrives by a port that was closed`() throws {
        let (thread, heard) = (try EventThread(name: "loop"), Recorder<Int>())
        let ports = Recorder<Port<Int>>()
        thread.perform { loop in
            ports.append(loop.port { heard.append($0) })
            ports.append(loop.port { heard.append(-$0) })
        }
        try #require(ports.wait(forCount: 2))
        ports.elements[0].send(1)
        thread.perform { loop in loop.close(ports.elements[0]) }
        ports.elements[0].send(2)
        ports.elements[1].send(3)
        try #require(heard.wait(forCount: 2))
        #expect(heard.elements == [1, -3])
        thread.stop(waits: true)
    }

    @Test func `the loop knows its longest step`() throws {
        let (thread, steps) = (try EventThread(name: "loop"), Recorder<Int64>())
        thread.perform { _ in usleep(20_000) }
        thread.perform { loop in steps.append(loop.longestStep) }
        try #require(steps.wait(forCount: 1))
        #expect(steps.elements[0] >= 20_000_000)
        thread.stop(waits: true)
    }

    /// Takes its time for each post, and for the first until it may go on.
    private final class SlowPeer: BusPeer, PostListener, LoopTenant {
        let receiver: Receiver
        let isReady: Counter
        let count: Counter
        let mayGoOn: Counter

        init(_ receiver: Receiver, _ isReady: Counter, _ count: Counter, _ mayGoOn: Counter) {
            (self.receiver, self.isReady, self.count, self.mayGoOn) = (receiver, isReady, count, mayGoOn)
        }

        var keepsConnection: Bool { false }
        func linkIsReady(_ link: BusLink) {
            receiver.subscribe(names: ["com.example.x"], for: self) { [isReady] _ in isReady.add() }
        }
        func linkIsLost(_ error: NotifyBusError) {}
        func handle(_ call: BusCall) -> Bool { false }
        func handle(_ signal: BusSignal) {}
        func handle(post name: NotifyName, from sender: String) {
            count.add()
            if count.value == 1 { _ = mayGoOn.wait(for: 2) }
            usleep(2_000)
        }
        func loopHasEnded() { receiver.link.end() }
    }

    @Test(arguments: busKinds)
    func `a connection that has read a great deal leaves others their turns`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let thread = try EventThread(name: "loop")
        let (isReady, count, mayGoOn) = (Counter(), Counter(), Counter())
        let address = bus.address
        thread.perform { loop in
            let link = BusLink(bus: .address(address))
            let peer = SlowPeer(Receiver(link), isReady, count, mayGoOn)
            (link.peer, loop.tenant) = (peer, peer)
            loop.add(peer.receiver)
            link.open()
        }
        try #require(isReady.wait(for: 1))
        // While the loop is held up, everything arrives that it then reads at once.
        thread.perform { _ in _ = mayGoOn.wait(for: 1) }
        let poster = NotifyCenter(bus: .address(address))
        let posts = 100
        for _ in 0..<posts { try poster.postOnceConnected("com.example.x") }
        try poster.synchronize(timeout: .patience)
        let turns = Recorder<Int>()
        mayGoOn.add()
        try #require(count.wait(for: 1))
        thread.perform { _ in turns.append(count.value) }
        mayGoOn.add()
        try #require(count.wait(for: posts))
        #expect(turns.elements.first.map { $0 < posts / 2 } == true)
        thread.stop(waits: true)
        try? poster.close(timeout: nil)
    }

    private final class Client: ServiceClient {
        let service = FollowedService(name: "com.example.Service", title: "the service", signals: [])
        let reasons: Recorder<String>
        init(_ reasons: Recorder<String>) { self.reasons = reasons }
        func serviceHasCome(_ service: Service) {}
        func handle(_ signal: BusSignal) {}
        func serviceIsAway(_ reason: String) { reasons.append(reason) }
    }

    @Test func `a machine's bus that accepts no connection holds nothing up`() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/bus"
        let server = try ListeningSocket(path)
        let (thread, reasons, turns) = (try EventThread(name: "loop"), Recorder<String>(), Counter())
        thread.perform { loop in
            let services = MachineServices(on: loop, bus: .address("unix:path=\(path)"))
            services.add(Client(reasons))
            loop.soon { withExtendedLifetime(services) {} }
        }
        thread.perform { _ in turns.add() }
        try #require(turns.wait(for: 1))
        #expect(reasons.elements == ["the system bus accepts no connections"])
        withExtendedLifetime(server) {}
        thread.stop(waits: true)
    }
}

/// A socket on which no process accepts connections, with as many waiting as fit.
private final class ListeningSocket {
    private let server: Int32
    private var clients: [Int32] = []

    init(_ path: String) throws {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
        func use(_ socket: Int32, _ body: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
            withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    body(socket, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
        }
        server = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        try #require(use(server, bind) == 0 && listen(server, 0) == 0)
        while clients.count < 16 {
            let client = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
            clients.append(client)
            if use(client, connect) != 0 { break }
        }
        try #require(clients.count < 16)
    }

    deinit { for descriptor in clients + [server] { close(descriptor) } }
}
