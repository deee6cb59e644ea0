// SPDX-License-Identifier: Apache-2.0

/// The little of PulseAudio's native protocol that says who plays sound. PipeWire speaks it, too.
///
/// A message is a header of five numbers, of which the first is its length, followed by values, each with a letter for
/// its type. All numbers are big-endian.
package enum PulseWire {
    package enum Fault: Error, Equatable { case unintelligible }

    package enum Message: Equatable, Sendable {
        case error
        /// The answer to the question with this number.
        case reply(UInt32, [UInt8])
        /// The streams that play have changed.
        case changed
        case other
    }

    /// The numbers of our questions.
    package enum Question {
        package static let authentication: UInt32 = 0
        package static let name: UInt32 = 1
        package static let subscription: UInt32 = 2
        package static let streams: UInt32 = 3
    }

    private enum Command {
        static let error: UInt32 = 0
        static let reply: UInt32 = 2
        static let authenticate: UInt32 = 8
        static let setName: UInt32 = 9
        static let listStreams: UInt32 = 30
        static let subscribe: UInt32 = 35
        static let event: UInt32 = 66
    }

    /// The version that says whether a stream is paused is 19; a newer server adapts to this one.
    private static let version: UInt32 = 20
    private static let headerSize = 20
    private static let maximumSize = 1_048_576

    // MARK: - What is sent

    /// Begins a conversation. The server knows its own user by the socket, so the secret that it has for others is empty.
    package static var greeting: [UInt8] {
        message(Command.authenticate, Question.authentication) {
            $0.number(version)
            $0.bytes([UInt8](repeating: 0, count: 256))
        }
            + message(Command.setName, Question.name) { $0.properties([("application.name", "notify-agent")]) }
            // Streams that play.
            + message(Command.subscribe, Question.subscription) { $0.number(4) } + listStreams
    }

    package static var listStreams: [UInt8] { message(Command.listStreams, Question.streams) { _ in } }

    private struct Writer {
        var bytes: [UInt8] = []

        mutating func plain(_ value: UInt32) { withUnsafeBytes(of: value.bigEndian) { bytes += $0 } }

        mutating func number(_ value: UInt32) {
            bytes.append(UInt8(ascii: "L"))
            plain(value)
        }

        mutating func bytes(_ value: [UInt8]) {
            bytes.append(UInt8(ascii: "x"))
            plain(UInt32(value.count))
            bytes += value
        }

        mutating func text(_ value: String) { bytes += [UInt8(ascii: "t")] + value.utf8 + [0] }

        mutating func properties(_ all: [(String, String)]) {
            bytes.append(UInt8(ascii: "P"))
            for (key, value) in all {
                text(key)
                number(UInt32(value.utf8.count + 1))
                bytes(Array(value.utf8) + [0])
            }
            bytes.append(UInt8(ascii: "N"))
        }
    }

    private static func message(_ command: UInt32, _ question: UInt32, _ write: (inout Writer) -> Void) -> [UInt8] {
        var body = Writer()
        body.number(command)
        body.number(question)
        write(&body)
        var header = Writer()
        header.plain(UInt32(body.bytes.count))
        // Not sound: no channel, no place, no flags.
        for value: UInt32 in [.max, 0, 0, 0] { header.plain(value) }
        return header.bytes + body.bytes
    }

    // MARK: - What is received

    /// Takes the first message off a buffer, without moving what is behind it; nil if it is not all there yet.
    package static func take(from buffer: inout ArraySlice<UInt8>) throws(Fault) -> Message? {
        guard buffer.count >= headerSize else { return nil }
        var header = Reader(buffer.prefix(headerSize))
        guard let length = header.plain(), let channel = header.plain(), length <= maximumSize else {
            throw .unintelligible
        }
        let rest = buffer.dropFirst(headerSize)
        guard rest.count >= Int(length) else { return nil }
        defer { buffer = rest.dropFirst(Int(length)) }
        guard channel == .max else { return .other }
        var reader = Reader(rest.prefix(Int(length)))
        guard let command = reader.number(), let question = reader.number() else { throw .unintelligible }
        switch command {
        case Command.error: return .error
        case Command.reply: return .reply(question, Array(reader.rest))
        case Command.event: return .changed
        default: return .other
        }
    }

    /// The processes whose streams play, in the answer to `listStreams`.
    package static func players(in answer: [UInt8]) throws(Fault) -> Set<Int32> {
        var reader = Reader(answer[...])
        var players: Set<Int32> = []
        while !reader.rest.isEmpty {
            // Its number, its name, and the numbers of its module, its client and its sink.
            guard reader.number() != nil, reader.skip("t"), reader.number() != nil, reader.number() != nil,
                reader.number() != nil,
                // The kind of samples, the channels, their volumes, two latencies, the resampler and the driver.
                reader.skip("amvUUtt"), reader.truth() != nil, let properties = reader.properties(),
                let isPaused = reader.truth(), reader.truth() != nil, reader.truth() != nil
            else { throw .unintelligible }
            if !isPaused, let pid = properties["application.process.id"].flatMap({ Int32($0) }), pid > 0 {
                players.insert(pid)
            }
        }
        return players
    }

    private struct Reader {
        private(set) var rest: ArraySlice<UInt8>

        init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

        mutating func plain() -> UInt32? {
            guard rest.count >= 4 else { return nil }
            defer { rest = rest.dropFirst(4) }
            return rest.prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
        }

        private mutating func drop(_ count: Int) -> Bool {
            guard count >= 0, rest.count >= count else { return false }
            rest = rest.dropFirst(count)
            return true
        }

        mutating func number() -> UInt32? { rest.popFirst() == UInt8(ascii: "L") ? plain() : nil }

        mutating func truth() -> Bool? {
            switch rest.popFirst() {
            case UInt8(ascii: "1"): true
            case UInt8(ascii: "0"): false
            default: nil
            }
        }

        mutating func text() -> String? {
            guard rest.popFirst() == UInt8(ascii: "t"), let end = rest.firstIndex(of: 0) else { return nil }
            defer { rest = rest[(end + 1)...] }
            return String(decoding: rest[..<end], as: UTF8.self)
        }

        mutating func properties() -> [String: String]? {
            guard rest.popFirst() == UInt8(ascii: "P") else { return nil }
            var all: [String: String] = [:]
            while rest.first != UInt8(ascii: "N") {
                guard let key = text(), let count = number(), rest.popFirst() == UInt8(ascii: "x"), plain() == count,
                    rest.count >= Int(count)
                else { return nil }
                all[key] = String(decoding: rest.prefix(Int(count)).prefix { $0 != 0 }, as: UTF8.self)
                rest = rest.dropFirst(Int(count))
            }
            rest = rest.dropFirst()
            return all
        }

        /// Passes over values of these types.
        mutating func skip(_ types: StaticString) -> Bool {
            UnsafeBufferPointer(start: types.utf8Start, count: types.utf8CodeUnitCount).allSatisfy { type in
                switch (type, rest.popFirst()) {
                // A text may be absent.
                case (UInt8(ascii: "t"), UInt8(ascii: "N")): return true
                case (UInt8(ascii: "t"), UInt8(ascii: "t")):
                    guard let end = rest.firstIndex(of: 0) else { return false }
                    rest = rest[(end + 1)...]
                    return true
                case (UInt8(ascii: "a"), UInt8(ascii: "a")): return drop(6)
                case (UInt8(ascii: "m"), UInt8(ascii: "m")): return rest.popFirst().map { drop(Int($0)) } ?? false
                case (UInt8(ascii: "v"), UInt8(ascii: "v")): return rest.popFirst().map { drop(4 * Int($0)) } ?? false
                case (UInt8(ascii: "U"), UInt8(ascii: "U")): return drop(8)
                default: return false
                }
            }
        }
    }
}
