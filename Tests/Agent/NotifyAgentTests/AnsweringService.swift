// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization
import TestSupport

/// A service that answers what a test says, on a connection and a thread of its own, and may leave one question without an
/// answer.
final class AnsweringService: Sendable {
    struct Answer: Sendable {
        var signature = ""
        var body = RawBody()
        /// The name of an error instead.
        var error: String?
    }

    /// What was asked: the method, and what it was asked of.
    typealias Question = String

    private struct State {
        var asked: [Question] = []
        var muted: Question?
        var isAlwaysMute = false
        var answers: [Question: Answer] = [:]
        var isOver = false
    }

    private let client: RawBusClient
    private let state = Mutex(State())

    init(_ bus: PrivateBus, _ names: [String], _ answers: [Question: Answer]) throws {
        client = try RawBusClient(address: bus.address)
        state.withLock { $0.answers = answers }
        for name in names {
            var body = RawBody()
            body.append(name)
            body.append(UInt32(4))
            try client.callBus("RequestName", signature: "su", body: body.bytes)
        }
        startThread { [weak self] in
            while self?.serve() == true {}
        }
    }

    func end() { state.withLock { $0.isOver = true } }

    /// Leaves the next question of this kind without an answer, or all from now on.
    func mute(_ question: Question, always isAlways: Bool = false) {
        state.withLock { ($0.muted, $0.isAlwaysMute) = (question, isAlways) }
    }

    /// Answers a question differently from now on.
    func answer(_ question: Question, _ answer: Answer) { state.withLock { $0.answers[question] = answer } }

    /// What was asked so far.
    var asked: [Question] { state.withLock { $0.asked } }

    func count(_ question: Question) -> Int { asked.count { $0 == question } }

    func emit(_ path: String, _ interface: String, _ member: String, _ signature: String, _ body: RawBody) throws {
        try client.emitSignal(path: path, interface: interface, member: member, signature: signature, body: body.bytes)
    }

    private func serve() -> Bool {
        if state.withLock({ $0.isOver }) { return false }
        guard let call = try? client.readMessage(timeout: .milliseconds(100)) else { return true }
        guard call.kind == .call else { return true }
        let member = call.member ?? ""
        let specific = call.string.map { "\(member) \($0)" } ?? member
        let answer = state.withLock { state -> Answer? in
            // Of several properties or units, each is a question of its own.
            let question = state.answers[specific] == nil ? member : specific
            state.asked.append(question)
            if state.muted == question {
                if !state.isAlwaysMute { state.muted = nil }
                return nil
            }
            return state.answers[question] ?? Answer(error: "org.freedesktop.DBus.Error.UnknownMethod")
        }
        guard let answer, call.flags & 1 == 0 else { return true }
        var reply = RawMessage(answer.error == nil ? .reply : .error)
        (reply.destination, reply.replySerial, reply.flags) = (call.sender, call.serial, 1)
        (reply.errorName, reply.signature, reply.body) = (answer.error, answer.signature, answer.body.bytes)
        _ = try? client.send(reply)
        return true
    }
}

extension RawBody {
    /// Appends an `a{sv}` of truth values and numbers.
    mutating func append(properties: KeyValuePairs<String, (signature: String, value: UInt32)>) {
        var entries = RawBody()
        for (name, property) in properties {
            entries.align(to: 8)
            entries.append(name)
            entries.append(signature: property.signature)
            if property.signature == "d" || property.signature == "t" || property.signature == "x" {
                entries.align(to: 8)
                let bits = property.signature == "d" ? Double(property.value).bitPattern : UInt64(property.value)
                entries.append(bytes: withUnsafeBytes(of: bits.littleEndian) { Array($0) })
            } else {
                entries.append(property.value)
            }
        }
        align(to: 4)
        append(UInt32(entries.bytes.count))
        align(to: 8)
        append(bytes: entries.bytes)
    }
}

extension AnsweringService.Answer {
    static let empty = AnsweringService.Answer()

    static func properties(_ values: KeyValuePairs<String, (signature: String, value: UInt32)>) -> Self {
        var body = RawBody()
        body.append(properties: values)
        return Self(signature: "a{sv}", body: body)
    }

    static func text(_ text: String, as signature: String) -> Self {
        var body = RawBody()
        body.append(text)
        return Self(signature: signature, body: body)
    }

    static func number(_ number: UInt32, as signature: String = "u") -> Self {
        var body = RawBody()
        body.append(number)
        return Self(signature: signature, body: body)
    }

    /// A number in as many variants as there are.
    static func variant(_ number: UInt32, in count: Int = 1) -> Self {
        var body = RawBody()
        for _ in 1..<count { body.append(signature: "v") }
        body.append(signature: "u")
        body.append(number)
        return Self(signature: "v", body: body)
    }

    static func variant(_ text: String) -> Self {
        var body = RawBody()
        body.append(signature: "s")
        body.append(text)
        return Self(signature: "v", body: body)
    }

    /// systemd's list of one unit, which is active.
    static func unit(_ name: String) -> Self {
        var unit = RawBody()
        unit.append(UInt32(0))
        unit.align(to: 8)
        let start = unit.bytes.count
        for text in [name, "", "loaded", "active", "running", "", "/unit"] { unit.append(text) }
        unit.append(UInt32(0))
        for text in ["", "/"] { unit.append(text) }
        var whole = RawBody()
        whole.append(UInt32(unit.bytes.count - start))
        whole.append(bytes: unit.bytes[4...])
        return Self(signature: "a(ssssssouso)", body: whole)
    }

    /// logind's list of one session.
    static func sessions(_ id: String, user: UInt32) -> Self {
        var body = RawBody()
        body.append(UInt32(0))
        body.align(to: 8)
        let start = body.bytes.count
        body.append(id)
        body.append(user)
        for text in ["somebody", "seat0", "/org/freedesktop/login1/session/\(id)"] { body.append(text) }
        var whole = RawBody()
        whole.append(UInt32(body.bytes.count - start))
        whole.append(bytes: body.bytes[4...])
        return Self(signature: "a(susso)", body: whole)
    }
}
