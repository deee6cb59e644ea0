// SPDX-License-Identifier: Apache-2.0

import NotifyCore
import NotifyNames
import TestSupport
import Testing

/// What a connection believes of the process that answers while it is opened. A real bus lets it in: see `EntryTests`
/// and `NamespaceTests`.
@Suite struct HandshakeTests {
    private static let guid = "0123456789abcdef0123456789abcdef"

    /// A bus that does not know the user whom libdbus names.
    private static let rejects: ScriptedServer.Script = { stream in
        try stream.hear()
        try stream.say("REJECTED EXTERNAL\r\n")
        try stream.waitForEnd()
    }

    /// What a bus answers to each line, up to the last that there is.
    private static let answers = ["DATA\r\n", "OK \(guid)\r\n", "AGREE_UNIX_FD\r\n"]
    /// What is said to it, line by line.
    private static let lines = ["\0AUTH EXTERNAL\r\n", "DATA\r\n", "NEGOTIATE_UNIX_FD\r\n", "BEGIN\r\n"]

    /// Answers so many lines properly, and checks what it hears.
    private static func answer(_ count: Int, _ stream: UnixStream) throws {
        for number in 0..<count {
            #expect(try stream.hear() == lines[number])
            try stream.say(answers[number])
        }
    }

    /// Opens a connection to a server that rejects libdbus, and then follows the script.
    private func open(
        parameters: String = "",
        within limit: Int64 = Handshake.usualLimit,
        _ script: @escaping ScriptedServer.Script
    ) throws -> (NotifyBusError?, server: ScriptedServer) {
        let server = try ScriptedServer([HandshakeTests.rejects, script])
        return (error(at: server.address + parameters, within: limit), server)
    }

    private func error(at address: String, within limit: Int64) -> NotifyBusError? {
        do throws(NotifyBusError) {
            _ = try Handshake(address: address, title: "the bus", until: .now + limit).wait()
            return nil
        } catch {
            return error
        }
    }

    private let refusal = "The bus closed the connection instead of accepting it; it may belong to another user."

    @Test func `a client that is turned away in both ways gets one sentence, after one more connection`() throws {
        let (error, server) = try open(HandshakeTests.rejects)
        #expect(error?.code == .noBus && error?.description == refusal)
        #expect(server.accepted.value == 2)
    }

    @Test(arguments: 0...3)
    func `a server that closes the connection after any line has refused it`(count: Int) throws {
        let (error, server) = try open { stream in
            try HandshakeTests.answer(count, stream)
            try stream.hear()
        }
        #expect(error?.code == .noBus && error?.description == refusal)
        #expect(server.accepted.value == 2)
    }

    @Test(arguments: 0...3)
    func `a server that falls silent after any line has until the deadline`(count: Int) throws {
        let (error, _) = try open(within: 500) { stream in
            try HandshakeTests.answer(count, stream)
            try stream.waitForEnd()
        }
        #expect(error?.code == .timedOut)
    }

    @Test(arguments: 0..<3)
    func `an answer may come in three parts`(number: Int) throws {
        let heard = Recorder<String>()
        let (error, _) = try open { stream in
            try HandshakeTests.answer(number, stream)
            try stream.hear()
            let bytes = Array(HandshakeTests.answers[number].utf8)
            // The last part is the last byte of "\r\n".
            for part in [bytes[..<1], bytes[1..<(bytes.count - 1)], bytes[(bytes.count - 1)...]] {
                try stream.send(Array(part))
                // Long enough to be read on its own. If it isn't, the test shows less, and doesn't fail.
                try? passTime("20ms")
            }
            heard.append(try stream.hear())
        }
        #expect(error?.description == refusal)
        #expect(heard.elements.first?.hasPrefix(HandshakeTests.lines[number + 1]) == true)
    }

    @Test(arguments: [
        (0, "OK \r\n"), (0, "OK 0123456789abcdef\r\n"), (0, "OK zzzz456789abcdef0123456789abcdef\r\n"),
        (0, "OK \(guid) more\r\n"), (0, "OK \(guid)\n"), (0, "\r\n"), (0, "\n"), (0, "AGREE_UNIX_FD\r\n"),
        (0, "ERROR\r\n"), (0, "BEGIN\r\n"), (0, "l\u{1}\u{0}\u{1}\r\n"), (1, "DATA\r\n"), (1, "DATA 30\r\n"),
        (1, "REJECTED EXTERNAL\r\n"), (1, "OK \(guid)\r\nmore"), (1, "OK \(guid)\r\nAGREE_UNIX_FD\r\n"),
        (2, "OK \(guid)\r\n"), (2, "REJECTED EXTERNAL\r\n"), (2, "AGREE_UNIX_FD\r\nl"),
    ])
    func `anything else than the next line of the protocol is a refusal, at once`(count: Int, answer: String) throws {
        let (error, _) = try open { stream in
            try HandshakeTests.answer(count, stream)
            try stream.hear()
            try stream.say(answer)
            try stream.waitForEnd()
        }
        #expect(error?.code == .noBus && error?.description == refusal, "\(error?.description ?? "")")
    }

    @Test(arguments: 0...2)
    func `a line without an end is not read for ever`(count: Int) throws {
        let ended = Counter()
        let (error, _) = try open { stream in
            defer { ended.add() }
            try HandshakeTests.answer(count, stream)
            try stream.hear()
            for _ in 0..<100_000 { try stream.say(String(repeating: "x", count: 100)) }
        }
        #expect(error?.code == .noBus && error?.description == refusal)
        // The connection is closed.
        #expect(ended.wait(for: 1))
    }

    @Test func `what follows the last line is no message, and ends the connection`() throws {
        let (error, _) = try open { stream in
            try HandshakeTests.answer(3, stream)
            try stream.hear()
            try stream.say("garbage that is as long as the header of a message")
            try stream.waitForEnd()
        }
        #expect(error?.code == .noBus && error?.description == refusal)
    }

    @Test func `a server that takes no descriptors is asked on`() throws {
        let heard = Recorder<String>()
        let (error, _) = try open { stream in
            try HandshakeTests.answer(2, stream)
            try stream.hear()
            try stream.say("ERROR \"no descriptors\"\r\n")
            heard.append(try stream.hear())
        }
        #expect(error?.description == refusal)
        #expect(heard.elements.first?.hasPrefix("BEGIN\r\n") == true)
    }

    @Test(arguments: [true, false])
    func `a server with another GUID than the address says is not entered, in either way`(isKnown: Bool) throws {
        let other = String(repeating: "0", count: 32)
        let heard = Recorder<String>()
        let (error, _) = try open(parameters: ",guid=\(isKnown ? HandshakeTests.guid : other)") { stream in
            try HandshakeTests.answer(2, stream)
            heard.append(try stream.hear())
        }
        #expect(error?.description == refusal)
        #expect(heard.elements == (isKnown ? ["NEGOTIATE_UNIX_FD\r\n"] : []))
    }

    @Test(arguments: [true, false])
    func `a server without room for another connection is asked again until the deadline`(makesRoom: Bool) throws {
        let fillers = Recorder<UnixStream>()
        let heard = Recorder<String>()
        let address = Recorder<String>()
        let close: ScriptedServer.Script = { _ in }
        let server = try ScriptedServer(
            backlog: 0,
            [
                { stream in
                    try stream.hear()
                    try #require(address.wait(forCount: 1))
                    while let filler = ScriptedServer.fill(address.elements[0]) { fillers.append(filler) }
                    try stream.say("REJECTED EXTERNAL\r\n")
                    try stream.waitForEnd()
                    // The second connection has been tried. If not, the test shows less, and doesn't fail.
                    try? passTime(makesRoom ? "50ms" : "1s")
                }, close,
                { heard.append(try $0.hear()) },
            ]
        )
        address.append(server.address)
        let error = error(at: server.address, within: makesRoom ? Handshake.usualLimit : 500)
        #expect(fillers.count == 1)
        if makesRoom {
            #expect(error?.description == refusal)
            #expect(heard.elements == ["\0AUTH EXTERNAL\r\n"])
        } else {
            #expect(error?.code == .timedOut)
        }
    }

    @Test func `closing a center ends the wait also on the second way`() throws {
        let silent = Counter()
        let server = try ScriptedServer([
            HandshakeTests.rejects,
            { stream in
                try stream.hear()
                silent.add()
                try stream.waitForEnd()
            },
        ])
        let center = NotifyCenter(bus: .address(server.address))
        let ended = Recorder<NotifyBusError.Code>()
        startThread {
            do throws(NotifyBusError) { try center.connect(timeout: .seconds(60)) } catch { ended.append(error.code) }
        }
        try #require(silent.wait(for: 1))
        try? center.close(timeout: nil)
        try #require(ended.wait(forCount: 1))
        #expect(ended.elements == [.closed])
    }
}
