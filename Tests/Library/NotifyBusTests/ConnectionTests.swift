// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

@testable import NotifyCore

/// The connection to a bus on its own.
@Suite struct ConnectionTests {
    @Test(arguments: busKinds)
    func `a call that is longer than any that is allowed is refused, and the observer goes on`(kind: BusKind) throws {
        let limits = ["max_message_size", "max_incoming_bytes", "max_outgoing_bytes"]
        let bus = try PrivateBus(kind, limits: Dictionary(uniqueKeysWithValues: limits.map { ($0, 100_000_000) }))
        let center = bus.makeCoreCenter()
        let heard = Counter()
        let observation = try center.addObserver(for: "com.example.x", timeout: .seconds(25)) { _ in heard.add() }
        let length = MessageReader.longestCall
        let answer = try RawBusClient(address: bus.address).call(
            destination: try center.observingName(),
            path: "/",
            interface: "com.example.Any",
            member: "Do",
            signature: "ay",
            body: withUnsafeBytes(of: UInt32(length).littleEndian) { Array($0) } + [UInt8](repeating: 7, count: length)
        )
        #expect(answer.errorName == "org.freedesktop.DBus.Error.LimitsExceeded")
        try bus.makeCoreCenter().postOnceConnected("com.example.x")
        #expect(heard.wait(for: 1, timeout: .patience))
        observation.cancel()
    }

    @Test(arguments: busKinds)
    func `a call that is not valid is refused, and not looked at`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        // The bus passes on no such call, so it becomes invalid on its way.
        let relay = try BusRelay(to: bus.address, .garbles("GARBLED"))
        defer { relay.close() }
        let center = NotifyCenter(bus: .address(relay.address))
        let heard = Counter()
        let observation = try center.addObserver(for: "com.example.x", timeout: .seconds(25)) { _ in heard.add() }
        let (caller, observer) = (try RawBusClient(address: bus.address), try center.observingName())
        func deliver(_ text: String) throws -> RawMessage {
            try caller.call(
                destination: observer,
                path: "/org/notifybus/Observer1",
                interface: "org.notifybus.Observer1",
                member: "Deliver",
                signature: "s",
                body: RawBusClient.stringBody(text)
            )
        }
        // Only the agent may make this call.
        #expect(try deliver("GARBLE").errorName == "org.freedesktop.DBus.Error.AccessDenied")
        let refusal = try deliver("GARBLED")
        #expect(refusal.kind == .error && refusal.errorName != "org.freedesktop.DBus.Error.AccessDenied")
        try bus.makeCoreCenter().postOnceConnected("com.example.x")
        #expect(heard.wait(for: 1, timeout: .patience))
        observation.cancel()
    }

    @Test(arguments: busKinds)
    func `everything that the bus wrote before it died is read, and then the loss is reported`(
        kind: BusKind
    ) throws {
        let bus = try PrivateBus(kind)
        let poster = bus.makeCoreCenter()
        // Few enough that the bus queues none: a unix(7) socket is writable up to a quarter of its buffer.
        let names = try (1...16).map { try NotifyName("com.example.\($0)") }
        let connection = try open(bus)
        for rule in MatchRule.prefix("com.example.") { try ask("AddMatch", rule, connection) }

        // The size of these posts in bytes.
        for name in names { try poster.postOnceConnected(name) }
        var heard: [String] = []
        var bytes = 0
        while heard.count < names.count {
            let message = try nextMessage(connection)
            heard.append(message.postedName.map { String(decoding: $0, as: UTF8.self) } ?? "")
            bytes += message.bytes.count
        }
        try #require(heard == names.map(\.string))

        for name in names { try poster.postOnceConnected(name) }
        let descriptor = connection.descriptor
        try #require(
            waitUntil {
                var waiting: Int32 = 0
                return ioctl(descriptor, UInt(FIONREAD), &waiting) == 0 && waiting == bytes
            }
        )
        bus.kill()
        heard = []
        var message = try nextMessage(connection)
        while message.kind != .disconnected {
            heard.append(message.postedName.map { String(decoding: $0, as: UTF8.self) } ?? "")
            message = try nextMessage(connection)
        }
        #expect(heard == names.map(\.string))
        #expect(fcntl(descriptor, F_GETFD) >= 0, "closed before it was released")
    }

    @Test(arguments: busKinds)
    func `queued data goes out complete and in order, descriptors with their messages`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let receiver = try open(bus, takesDescriptors: true)
        let sender = try open(bus)
        let name = try ask("GetNameOwner", "org.freedesktop.DBus", receiver)
        #expect(name == "org.freedesktop.DBus")
        let own = try uniqueName(receiver)
        bus.stop()
        // More than the socket takes.
        let count = 3_000
        let pipes = (0..<10).map { _ in socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0) }
        defer { pipes.forEach { close($0) } }
        for number in 0..<count {
            var arguments: [BusValue] = [.uint32(UInt32(number)), .string(String(repeating: "x", count: 100))]
            if number % 300 == 299 { arguments.append(.descriptor(pipes[number / 300])) }
            let signal = OutgoingMessage.signal(to: own, path: "/x", interface: "org.x.x", member: "X", arguments)
            try #require(sender.send(signal) != 0)
        }
        #expect(sender.waitingCount > 0)
        bus.resume()
        var heard = 0
        while heard < count {
            var request = pollfd(fd: sender.descriptor, events: sender.events, revents: 0)
            if sender.waitingCount > 0, poll(&request, 1, 10) > 0 {
                sender.report(request.revents)
                _ = sender.next()
            }
            guard let message = try nextMessage(receiver, timeout: 10), message.kind == .signal, message.hasMember("X")
            else { continue }
            let arguments = try #require(message.arguments())
            #expect(arguments.first?.uint32 == UInt32(heard))
            if heard % 300 == 299 {
                let descriptor = try #require(arguments.last?.descriptor)
                var (ours, theirs) = (stat(), stat())
                fstat(pipes[heard / 300], &ours)
                fstat(descriptor, &theirs)
                #expect(descriptor >= 0 && ours.st_ino == theirs.st_ino)
            }
            arguments.closeDescriptors()
            heard += 1
        }
    }

    // MARK: - Driving a connection by hand

    private func open(_ bus: PrivateBus, takesDescriptors: Bool = false) throws -> BusConnection {
        let handshake = try Handshake(address: bus.address, title: "the bus", takesDescriptors: takesDescriptors)
        _ = try handshake.wait()
        return handshake.connection
    }

    private func nextMessage(_ connection: BusConnection, timeout: Int32) throws -> BusMessage? {
        if let message = connection.next() { return message }
        var request = pollfd(fd: connection.descriptor, events: connection.events, revents: 0)
        guard poll(&request, 1, timeout) > 0 else { return nil }
        connection.report(request.revents)
        return connection.next()
    }

    private func nextMessage(_ connection: BusConnection) throws -> BusMessage {
        let deadline = ContinuousClock.now + .patience
        while ContinuousClock.now < deadline {
            if let message = try nextMessage(connection, timeout: 1_000) { return message }
        }
        throw TestSupportError("No message came.")
    }

    @discardableResult
    private func ask(_ member: String, _ argument: String?, _ connection: BusConnection) throws -> String? {
        let serial = connection.send(.busCall(member, argument.map { [.string($0)] } ?? []))
        return try answer(to: serial, connection)
    }

    private func uniqueName(_ connection: BusConnection) throws -> String {
        // The answer's destination is its name, whatever the answer is.
        let serial = connection.send(.busCall("GetId"))
        while true {
            let message = try nextMessage(connection)
            if message.kind == .reply, message.replySerial == serial {
                return String(cString: try #require(message.destination))
            }
        }
    }

    private func answer(to serial: UInt32, _ connection: BusConnection) throws -> String? {
        while true {
            let message = try nextMessage(connection)
            guard message.replySerial == serial else { continue }
            try #require(message.kind == .reply)
            return message.text.map { String(decoding: $0, as: UTF8.self) }
        }
    }
}
