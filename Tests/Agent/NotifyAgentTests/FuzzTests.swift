// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

@Suite struct FuzzTests {
    @Test(arguments: anyBusKind())
    func `random valid calls are all answered, and the agent keeps running`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let client = try RawBusClient(address: agent.bus.address)
        var random = SeededGenerator(seed: 20_261)
        let interfaces = [
            "org.notifybus.Agent1", "org.freedesktop.DBus.Properties", "org.freedesktop.DBus.Introspectable",
            "org.freedesktop.DBus.Peer", "org.example.Other",
        ]
        let members = [
            "Register", "AddNames", "RemoveNames", "Report", "SetState", "Release", "FollowDesktop", "SetForeground",
            "SetNaps", "List", "Status", "Get", "GetAll", "Set",
            "Introspect", "Ping", "GetMachineId", "Other",
        ]
        let signatures = ["", "s", "a{sv}", "asas", "ssb", "ss", "ssv", "b", "u"]
        for _ in 0..<3_000 {
            var message = RandomBody(random)
            let signature =
                Bool.random(using: &random)
                ? signatures.randomElement(using: &random) ?? "" : message.randomSignature()
            message.append(signature)
            random = message.random
            let answer = try client.callAgent(
                members.randomElement(using: &random) ?? "",
                interface: interfaces.randomElement(using: &random) ?? "",
                path: Int.random(in: 0..<8, using: &random) == 0 ? "/elsewhere" : "/org/notifybus/Agent1",
                signature: signature,
                body: message.body.bytes
            )
            #expect(answer.kind == .reply || answer.kind == .error)
        }
        try agent.checkAlive()
        #expect(openDescriptors(of: agent.agent.pid) < 32)
    }
}

/// Writes random values of given types.
struct RandomBody {
    var random: SeededGenerator
    private(set) var body = RawBody()

    init(_ random: SeededGenerator) { self.random = random }

    private static let words = [
        "names", "prefixes", "state", "previous", "program", "socket", "foreground", "background", "suspended", "pid:1",
        "app:x", ":1.1", "", "com.example.a", "org.notifybus.Agent1", "Version", "\u{7}é\u{202e}",
    ]

    mutating func randomSignature() -> String {
        (0..<Int.random(in: 0...3, using: &random)).map { _ in randomType(depth: 0) }.joined()
    }

    private mutating func randomType(depth: Int) -> String {
        switch Int.random(in: 0..<(depth < 3 ? 10 : 6), using: &random) {
        case 0: "s"
        case 1: "u"
        case 2: "y"
        case 3: "t"
        case 4: "b"
        case 5: "g"
        case 6: "v"
        case 7: "a" + randomType(depth: depth + 1)
        case 8: "(" + randomType(depth: depth + 1) + randomType(depth: depth + 1) + ")"
        default: "a{s" + randomType(depth: depth + 1) + "}"
        }
    }

    mutating func append(_ signature: String) {
        var rest = Substring(signature)
        while !rest.isEmpty { append(RandomBody.takeType(&rest), depth: 0) }
    }

    private static func takeType(_ rest: inout Substring) -> String {
        guard let first = rest.popFirst() else { return "" }
        switch first {
        case "a": return "a" + takeType(&rest)
        case "(", "{":
            var type = String(first)
            while let next = rest.first, next != ")", next != "}" { type += takeType(&rest) }
            if let end = rest.popFirst() { type.append(end) }
            return type
        default: return String(first)
        }
    }

    private mutating func append(_ type: String, depth: Int) {
        switch type.first {
        case "s": body.append(RandomBody.words.randomElement(using: &random) ?? "")
        case "u": body.append(UInt32.random(in: 0...UInt32.max, using: &random))
        case "b": body.append(UInt32.random(in: 0...1, using: &random))
        case "y": body.append(bytes: [UInt8.random(in: 0...255, using: &random)])
        case "g": body.append(signature: "as")
        case "t":
            body.align(to: 8)
            body.append(bytes: (0..<8).map { _ in UInt8.random(in: 0...255, using: &random) })
        case "v":
            let inner = depth > 3 ? "s" : randomType(depth: 2)
            body.append(signature: inner)
            append(inner, depth: depth + 1)
        case "(", "{":
            body.align(to: 8)
            var rest = type.dropFirst().dropLast()
            while !rest.isEmpty { append(RandomBody.takeType(&rest), depth: depth + 1) }
        default: appendArray(of: String(type.dropFirst()), depth: depth)
        }
    }

    /// The length comes before the padding, and is known only once the elements are written.
    private mutating func appendArray(of element: String, depth: Int) {
        body.align(to: 4)
        let place = body.bytes.count
        body.append(UInt32(0))
        if ["t", "(", "{"].contains(element.prefix(1)) { body.align(to: 8) }
        let start = body.bytes.count
        for _ in 0..<Int.random(in: 0...3, using: &random) { append(element, depth: depth + 1) }
        var bytes = body.bytes
        for index in 0..<4 { bytes[place + index] = UInt8(truncatingIfNeeded: (bytes.count - start) >> (index * 8)) }
        body = RawBody()
        body.append(bytes: bytes)
    }
}
