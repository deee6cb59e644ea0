// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

@testable import NotifyCore

/// How what a bus sends is cut into messages, and how posts are read where they stand.
@Suite struct MessageInputTests {
    private func post(_ name: String, sender: String? = ":1.7") -> [UInt8] {
        var message = RawMessage(.signal)
        message.serial = 9
        message.path = "/org/notifybus"
        message.interface = "org.notifybus.n.com.example." + name
        message.member = "Posted"
        message.sender = sender
        message.signature = "s"
        message.body = RawBusClient.stringBody("com.example." + name)
        return message.bytes
    }

    private func call(bodyLength: Int) -> [UInt8] {
        var message = RawMessage(.call)
        message.serial = 3
        message.path = "/"
        message.member = "Do"
        message.signature = "ay"
        message.body =
            withUnsafeBytes(of: UInt32(bodyLength - 4).littleEndian) { Array($0) }
            + [UInt8](repeating: 7, count: bodyLength - 4)
        return message.bytes
    }

    /// Everything that comes out when bytes go in through a socket, in pieces.
    private func messages(_ bytes: [UInt8], pieces: (Int) -> Int) -> [[UInt8]?] {
        var pair: (Int32, Int32) = (-1, -1)
        withUnsafeMutableBytes(of: &pair) { pair in
            _ = socketpair(
                AF_UNIX,
                Int32(SOCK_STREAM.rawValue),
                0,
                pair.assumingMemoryBound(to: Int32.self).baseAddress
            )
        }
        var input = MessageInput()
        var found: [[UInt8]?] = []
        var offset = 0
        while offset < bytes.count || !input.hasEnded {
            if offset < bytes.count {
                let count = min(pieces(offset), bytes.count - offset)
                let sent = bytes.withUnsafeBytes { bytes in
                    send(pair.0, bytes.baseAddress.map { $0 + offset }, count, Int32(MSG_DONTWAIT))
                }
                if sent > 0 { offset += sent }
                if offset == bytes.count { close(pair.0) }
            }
            input.fill(from: pair.1)
            reading: while true {
                switch input.next() {
                case .message(let message): found.append(Array(message))
                case .passedOver: found.append(nil)
                case .nothing, .broken: break reading
                }
            }
        }
        close(pair.1)
        return found
    }

    @Test func `messages come out whole, wherever the stream is torn`() {
        let all = [post("a"), call(bodyLength: 24), post("bb"), post("c-" + String(repeating: "x", count: 300))]
        let bytes = Array(all.joined())
        for tear in 1..<bytes.count {
            #expect(messages(bytes) { offset in offset < tear ? tear - offset : bytes.count } == all)
        }
        #expect(messages(bytes) { _ in 1 } == all)
    }

    @Test func `a message that needs more room gets it, and a signal that is too long is passed over`() {
        var signal = post("big")
        signal.replaceSubrange(4..<8, with: withUnsafeBytes(of: UInt32(1_000_000).littleEndian) { Array($0) })
        let head = (16 + Int(signal[12]) + Int(signal[13]) << 8 + 7) & ~7
        signal = Array(signal[..<head]) + [UInt8](repeating: 1, count: 1_000_000)
        let large = call(bodyLength: 500_000)
        let all: [[UInt8]?] = [post("a"), large, nil, post("b"), large, post("c")]
        let bytes = Array([post("a"), large, signal, post("b"), large, post("c")].joined())
        var generator = SeededGenerator(seed: 5)
        for longest in [1_000, 40_000, 1_000_000] {
            #expect(messages(bytes) { _ in Int.random(in: 1...longest, using: &generator) } == all)
        }
    }

    @Test func `nothing is found in what is no message`() {
        for start in [[0], Array("hello, world, this is no message".utf8), Array(post("a")[..<3]) + [9]] as [[UInt8]] {
            #expect(messages(start + post("a")) { _ in 100 } == [])
        }
        var long = post("a")
        long.replaceSubrange(12..<16, with: [255, 255, 255, 255])
        #expect(messages(long) { _ in 100 } == [])
    }

    @Test(arguments: busKinds)
    func `what is read as a post in place reads the same through libdbus`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let connection = try BusConnection(address: bus.address, title: "the bus")
        var generator = SeededGenerator(seed: 11)
        let originals = [post("real"), post("real", sender: nil), post("x")]
        var accepted = 0
        for round in 0..<60_000 {
            var bytes = originals[round % originals.count]
            // Most of what is changed at random is no message for anybody, so few bytes are.
            for _ in 0..<(round / originals.count % 4) {
                bytes[Int.random(in: 0..<bytes.count, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
            }
            bytes.withUnsafeBytes { bytes in
                guard let found = BusMessage.post(in: bytes) else { return }
                accepted += 1
                let path = found.path.map { String(cString: $0) }
                let interface = found.interface.map { String(cString: $0) }
                let member = found.member.map { String(cString: $0) }
                let sender = found.sender.map { String(cString: $0) }
                let text = found.text.map { Array($0) }
                guard let other = connection.take(bytes) else {
                    // libdbus is stricter about which strings are legal, and only that.
                    let isForeign =
                        path != "/org/notifybus" || member != "Posted"
                        || interface?.hasPrefix("org.notifybus.n.com.example.") != true
                        || text?.contains { $0 >= 128 } == true
                        || (sender != nil && sender != ":1.7")
                    #expect(isForeign || interface.map { !isLegal($0) } == true)
                    return
                }
                #expect(other.kind == .signal)
                #expect(other.path.map { String(cString: $0) } == path)
                #expect(other.interface.map { String(cString: $0) } == interface)
                #expect(other.member.map { String(cString: $0) } == member)
                #expect(other.sender.map { String(cString: $0) } == sender)
                #expect(other.text.map { Array($0) } == text)
            }
        }
        #expect(accepted > 20_000)
    }

    /// Whether an interface has only characters that the specification allows there.
    private func isLegal(_ interface: String) -> Bool {
        interface.split(separator: ".", omittingEmptySubsequences: false).allSatisfy { part in
            guard let first = part.utf8.first, !(48...57).contains(first) else { return false }
            return part.utf8.allSatisfy { byte in
                (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte) || byte == 95
            }
        }
    }
}
