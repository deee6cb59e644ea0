// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import NotifyCore

/// How a stream is read that another reader has begun, such as that of a parked program.
@Suite struct StreamReaderTests {
    /// What a bus would have written to an observer: posts with a large and a small message in between.
    private func stream(_ names: [String]) -> (bytes: [UInt8], starts: [Int]) {
        var bytes: [UInt8] = []
        var starts: [Int] = []
        for (index, name) in names.enumerated() {
            starts.append(bytes.count)
            bytes += post(name, serial: UInt32(index + 1)).bytes
            if index == 2 {
                var large = post(name, serial: 900)
                large.member = "Other"
                large.body = RawBusClient.stringBody(String(repeating: "lB\u{1}", count: 30_000))
                bytes += large.bytes
            }
        }
        return (bytes, starts)
    }

    private func post(_ name: String, serial: UInt32) -> RawMessage {
        var message = RawMessage(.signal)
        message.path = "/org/notifybus"
        message.interface = "org.notifybus.n." + name
        message.member = "Posted"
        message.sender = ":1.7"
        message.serial = serial
        message.signature = "s"
        message.body = RawBusClient.stringBody(name)
        return message
    }

    private let names = (0..<40).map { "com.example.name\($0)" }

    private func read(_ pieces: [ArraySlice<UInt8>]) -> (names: [String], fragment: [UInt8]) {
        let reader = MessageReader(.anywhere)
        var cache = NameCache()
        var found: [String] = []
        func take() {
            while true {
                switch reader.next() {
                case .message(let message): if let name = cache.name(in: message) { found.append(name.string) }
                case .passedOver: continue
                case .nothing, .broken: return
                }
            }
        }
        for piece in pieces {
            piece.withUnsafeBytes { reader.feed($0) }
            take()
        }
        reader.finish()
        take()
        return (found, reader.fragment)
    }

    @Test func `every message is found, wherever reads split the stream`() {
        let whole = stream(names).bytes
        var random = SeededGenerator(seed: 7)
        for _ in 0..<60 {
            var pieces: [ArraySlice<UInt8>] = []
            var position = 0
            while position < whole.count {
                let length = Int.random(in: 1...(Bool.random(using: &random) ? 40 : 30_000), using: &random)
                pieces.append(whole[position..<min(whole.count, position + length)])
                position += length
            }
            let result = read(pieces)
            #expect(result.names == names)
            #expect(result.fragment.isEmpty)
        }
    }

    @Test func `a stream that begins in the middle of a message is read from the next message on`() {
        let (whole, starts) = stream(names)
        for offset in 1..<starts[1] {
            let result = read([whole[offset...]])
            #expect(result.names == Array(names.dropFirst()), "cut at \(offset)")
            #expect(result.fragment == Array(whole[offset..<starts[1]]), "cut at \(offset)")
        }
    }

    @Test func `random bytes cause no crash`() {
        var random = SeededGenerator(seed: 11)
        let tail = stream(names).bytes
        for _ in 0..<50 {
            let noise = (0..<Int.random(in: 1...3_000, using: &random)).map { _ in
                [UInt8.random(in: 0...255, using: &random), UInt8(ascii: "l"), 4, 1, 0].randomElement(using: &random)
                    ?? 0
            }
            #expect(read([noise[...], tail[...]]).names.last == names.last)
        }
    }
}
