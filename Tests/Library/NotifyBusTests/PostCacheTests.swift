// SPDX-License-Identifier: Apache-2.0

import NotifyNames
import TestSupport
import Testing

@testable import NotifyCore

@Suite struct PostCacheTests {
    /// The bytes of a post, as the bus might pass them on.
    private func post(of name: NotifyName, serial: UInt32) -> [UInt8] {
        OutgoingMessage.post(name).bytes(serial: serial) ?? []
    }

    @Test func `a message counts as already read only if all but its serial is the same`() throws {
        let cache = PostCache()
        let names = try (0..<40).map { try NotifyName("com.example.\(String(repeating: "x", count: $0))\($0)") }
        for name in names {
            post(of: name, serial: 7).withUnsafeBytes { cache.keep(name, from: ":1.42", $0) }
            for serial: UInt32 in [1, 8, .max] {
                let found = post(of: name, serial: serial).withUnsafeBytes { cache.find($0) }
                #expect(found?.name == name)
            }
        }
        let name = try #require(names.last)
        let bytes = post(of: name, serial: 7)
        for index in bytes.indices where !BusMessage.serialRange.contains(index) {
            for bit in 0..<8 {
                var changed = bytes
                changed[index] ^= 1 << bit
                #expect(changed.withUnsafeBytes { cache.find($0) } == nil)
            }
        }
        // Zero is not a serial.
        var unnumbered = bytes
        unnumbered.replaceSubrange(BusMessage.serialRange, with: repeatElement(0, count: 4))
        #expect(unnumbered.withUnsafeBytes { cache.find($0) } == nil)
        for count in bytes.indices { #expect(bytes[..<count].withUnsafeBytes { cache.find($0) } == nil) }
        #expect((bytes + [0]).withUnsafeBytes { cache.find($0) } == nil)
    }

    @Test func `the cache does not grow with the number of messages`() throws {
        let cache = PostCache()
        let names = try (0..<5_000).map { try NotifyName("com.example.n\($0)") }
        for name in names { post(of: name, serial: 1).withUnsafeBytes { cache.keep(name, from: ":1.1", $0) } }
        let found = names.filter { name in post(of: name, serial: 2).withUnsafeBytes { cache.find($0) } != nil }
        #expect((1...256).contains(found.count))
        let long = try NotifyName(String(repeating: "l", count: NotifyName.maximumLength))
        post(of: long, serial: 1).withUnsafeBytes { cache.keep(long, from: ":1.1", $0) }
        #expect(post(of: long, serial: 1).withUnsafeBytes { cache.find($0) } == nil)
    }

    @Test(arguments: busKinds)
    func `an accepted post helps no forgery`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let forger = try RawBusClient(address: bus.address)
        let others = try forger.uniqueNames()
        let center = bus.makeCoreCenter()
        let heard = Recorder<NotifyName>()
        let observation = try center.addObserver(for: "com.example.real", timeout: .seconds(25)) { heard.append($0) }
        let observer = try #require(try forger.uniqueNames().subtracting(others).first)
        func emit(
            path: String = "/org/notifybus",
            member: String = "Posted",
            body: String = "com.example.real"
        ) throws {
            try forger.emitSignal(
                path: path,
                interface: "org.notifybus.n.com.example.real",
                member: member,
                destination: observer,
                signature: "s",
                body: RawBusClient.stringBody(body)
            )
        }
        for _ in 0..<100 {
            try emit()
            try emit(path: "/org/notifybut")
            try emit(member: "Poster")
            try emit(body: "com.example.reap")
        }
        try #require(heard.wait(forCount: 100, timeout: .patience))
        try forger.emitSignal(
            path: "/org/notifybus",
            interface: "org.notifybus.n.com.example.real",
            member: "Posted",
            signature: "s",
            body: RawBusClient.stringBody("com.example.real")
        )
        try #require(heard.wait(forCount: 101, timeout: .patience))
        #expect(heard.count == 101 && center.statistics.rejected == 300)
        observation.cancel()
    }
}
