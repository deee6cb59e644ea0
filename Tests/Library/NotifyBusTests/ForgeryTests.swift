// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyBus
import TestSupport
import Testing

@Suite struct ForgeryTests {
    @Test(arguments: busKinds)
    func `a name that stays inside its process is not heard from another one`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let heard = Recorder<NotifyName>()
        let observation = try center.addObserver(matching: .everything, timeout: .seconds(25)) { heard.append($0) }
        let forger = try RawBusClient(address: bus.address)
        try forger.emitSignal(
            path: "/org/notifybus",
            interface: "org.notifybus.n.self.forged",
            member: "Posted",
            signature: "s",
            body: RawBusClient.stringBody("self.forged")
        )
        try forger.callBus("GetId")
        try bus.makeCenter().postOnceConnected("com.example.end")
        // Other tests in this process may post names of their own.
        try #require(heard.wait { $0.contains("com.example.end") })
        #expect(!heard.elements.contains("self.forged"))
        #expect(center.statistics.rejected == 1)
        observation.cancel()
    }

    private static let interface = "org.notifybus.n.com.example.real"

    @Test(arguments: busKinds)
    func `a forged signal is ignored and counted, and nothing crashes`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let forger = try RawBusClient(address: bus.address)
        let others = try forger.uniqueNames()
        let center = bus.makeCenter()
        let heard = Recorder<NotifyName>()
        let observation = try center.addObserver(for: "com.example.real", timeout: .seconds(25)) { heard.append($0) }
        let other = try center.addObserver(for: "com.example.other", timeout: .seconds(25)) { heard.append($0) }
        let observer = try forger.uniqueNames().subtracting(others)
        try #require(observer.count == 1)

        var forgeries = 0
        func forge(
            path: String = "/org/notifybus",
            interface: String = Self.interface,
            member: String = "Posted",
            destination: String? = nil,
            signature: String = "s",
            body: [UInt8]
        ) throws {
            try forger.emitSignal(
                path: path,
                interface: interface,
                member: member,
                destination: destination,
                signature: signature,
                body: body
            )
            forgeries += 1
        }
        let right = RawBusClient.stringBody("com.example.real")
        // Right interface, wrong body: unknown, known to the same observer, too long, empty, 1 MB.
        for body in ["com.example.fake", "com.example.other", "", String(repeating: "x", count: 512)] {
            try forge(body: RawBusClient.stringBody(body))
        }
        try forge(body: RawBusClient.stringBody(String(repeating: "m", count: 1_000_000)))
        // Wrong signature, no body.
        try forge(signature: "u", body: [1, 0, 0, 0])
        try forge(signature: "ss", body: twoStrings())
        try forge(signature: "", body: [])
        // Right body, wrong interface or path. The bus filters out such broadcasts, so it is sent directly to the
        // observer.
        for destination in observer {
            try forge(interface: "org.notifybus.n.com.example.fake", destination: destination, body: right)
            try forge(interface: "org.notifybus.h.x0123456789abcdef", destination: destination, body: right)
            try forge(path: "/org/notifybus/reserved", destination: destination, body: right)
            try forge(path: "/elsewhere", destination: destination, body: right)
            try forge(interface: "org.notifybus.n.com.example.real.x", destination: destination, body: right)
            // Everything is right except the member.
            for member in ["Posted2", "posted", "Poste", "Mark"] {
                try forge(member: member, destination: destination, body: right)
            }
        }
        try forger.emitSignal(
            path: "/org/notifybus",
            interface: Self.interface,
            member: "Posted",
            signature: "s",
            body: right
        )
        try #require(heard.wait(forCount: 1, timeout: .patience))
        #expect(heard.elements.map(\.string) == ["com.example.real"])
        #expect(center.statistics.rejected == forgeries)
        try center.postOnceConnected("com.example.other")
        #expect(heard.wait(forCount: 2, timeout: .patience))
        observation.cancel()
        other.cancel()
    }

    @Test(arguments: busKinds)
    func `method calls and random signals to a center's connections change nothing`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let stranger = try RawBusClient(address: bus.address)
        let others = try stranger.uniqueNames()
        let center = bus.makeCenter()
        let count = Counter()
        let observation = try center.addObserver(for: "com.example.real", timeout: .seconds(25)) { _ in count.add() }
        try center.postOnceConnected("com.example.real")
        #expect(count.wait(for: 1))
        let connections = try stranger.uniqueNames().subtracting(others)
        try #require(connections.count == 2)
        for name in connections {
            for member in ["Ping", "Introspect", "Anything"] {
                let reply = try stranger.call(
                    destination: name,
                    path: "/",
                    interface: "org.freedesktop.DBus.Peer",
                    member: member,
                    signature: "",
                    body: []
                )
                #expect(reply.errorName == "org.freedesktop.DBus.Error.UnknownMethod")
            }
            try stranger.emitSignal(
                path: "/",
                interface: "org.freedesktop.DBus",
                member: "NameOwnerChanged",
                destination: name,
                signature: "",
                body: []
            )
        }
        try center.postOnceConnected("com.example.real")
        #expect(count.wait(for: 2))
        #expect(center.statistics.rejected == 0)
        observation.cancel()
    }

    @Test(arguments: busKinds)
    func `a user's own name is heard, and kept although the bus must be asked first`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let (center, poster) = (bus.makeCenter(), bus.makeCenter())
        let own = try NotifyName("user.uid.\(geteuid()).theme")
        let ordinary: NotifyName = "com.example.theme"
        let heard = Recorder<NotifyName>()
        let observation = try center.addObserver(matching: .names([own, ordinary]), timeout: .seconds(25)) {
            heard.append($0)
        }
        let sent = [own, ordinary, own, ordinary, ordinary, own]
        for name in sent { try poster.postOnceConnected(name) }
        #expect(heard.wait(forCount: sent.count, timeout: .patience))
        #expect(heard.elements == sent)
        observation.cancel()
    }

    @Test(.enabled(if: geteuid() == 0, "needs root, to post as two users"), .serialized, arguments: busKinds)
    func `a user's name posted by another user is ignored and counted`(kind: BusKind) async throws {
        let bus = try PrivateBus(kind)
        // In a process of its own, which changes its user for a moment.
        try handOver(bus.address, to: "forged-name")
        await #expect(processExitsWith: .success) {
            let address = try handedOver(to: "forged-name")
            let center = NotifyCenter(bus: .address(address))
            let heard = Recorder<String>()
            let observation = try await center.addObserver(
                matching: .any(of: [.prefix("user.uid."), .prefix("com.example.")])
            ) {
                heard.append($0.string)
            }
            guard seteuid(65_534) == 0 else { exit(2) }
            let stranger = try RawBusClient(address: address)
            guard seteuid(0) == 0 else { exit(2) }
            for (name, interface) in [
                ("user.uid.0.x", "org.notifybus.n.user.uid._30.x"), ("user.uid.x", "org.notifybus.n.user.uid.x"),
                ("user.uid.65534.x", "org.notifybus.n.user.uid._365534.x"),
                ("com.example.end", "org.notifybus.n.com.example.end"),
            ] {
                try stranger.emitSignal(
                    path: "/org/notifybus",
                    interface: interface,
                    member: "Posted",
                    signature: "s",
                    body: RawBusClient.stringBody(name)
                )
            }
            guard heard.wait(forCount: 2, timeout: .patience) else { exit(3) }
            guard heard.elements == ["user.uid.65534.x", "com.example.end"] else { exit(4) }
            guard center.statistics.rejected == 2 else { exit(5) }
            observation.cancel()
            exit(0)
        }
    }

    private func twoStrings() -> [UInt8] {
        var body = RawBody()
        body.append("com.example.real")
        body.append("com.example.real")
        return body.bytes
    }
}
