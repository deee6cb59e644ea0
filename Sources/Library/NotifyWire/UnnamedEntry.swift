// SPDX-License-Identifier: Apache-2.0

import CDBusShim
import Glibc

/// Authenticates without naming a user: the bus takes the one that the kernel tells it. See the D-Bus specification,
/// "Authentication Protocol".
///
/// One line is said at a time. Each answer is one line of limited length, and the bus says nothing more before the next.
struct UnnamedEntry {
    enum Progress { case isUnderWay, isLetIn, isRefused }

    /// What was said last.
    private enum Step { case authenticate, data, negotiate, begin }

    /// The longest line that is read, in bytes.
    static let longestLine = 1_024
    /// For how long to leave a bus alone that has no room for another connection, in milliseconds.
    private static let pause: Int64 = 20

    private let address: String
    private(set) var socket: OwnDescriptor?
    /// When to connect; nil once there is a socket.
    private(set) var nextTry: MonotonicTime? = .now
    private(set) var busGUID = ""
    private var expectedGUID = ""
    private var step = Step.authenticate
    private var received: [UInt8] = []
    private let output = BusOutput()

    init(address: String) { self.address = address }

    var events: Int16 { output.isEmpty ? Int16(POLLIN) : Int16(POLLIN) | Int16(POLLOUT) }

    /// Connects, without waiting.
    ///
    /// - Returns: false if there is no bus to connect to.
    mutating func connect() -> Bool {
        var guid = nb_error()
        let descriptor = nb_connect(address, &guid)
        guard descriptor >= 0 else {
            nextTry = .now + UnnamedEntry.pause
            return errno == EAGAIN
        }
        nextTry = nil
        socket = OwnDescriptor(descriptor)
        expectedGUID = text(&guid.message)
        // The first byte is for systems that send credentials with it.
        say("\0AUTH EXTERNAL", .authenticate)
        return true
    }

    /// Reads and writes what the socket accepts now, without waiting.
    mutating func proceed() -> Progress {
        guard let socket, socket.isOurs else { return .isRefused }
        while true {
            output.flush(to: socket.number)
            if step == .begin { return output.isEmpty ? .isLetIn : .isUnderWay }
            guard let line = readLine(from: socket.number) else { return .isRefused }
            if line.isEmpty { return .isUnderWay }
            guard answer(line) else { return .isRefused }
        }
    }

    private mutating func say(_ line: String, _ step: Step) {
        Array((line + "\r\n").utf8).withUnsafeBytes { _ = output.write($0, [], to: nil) }
        self.step = step
    }

    /// - Returns: false if the bus refuses, or does not follow the protocol.
    private mutating func answer(_ line: String) -> Bool {
        let words = line.split(separator: " ", omittingEmptySubsequences: false)
        switch (step, words[0]) {
        case (.authenticate, "DATA"):
            // It asks who we are, and we have nothing to add.
            say("DATA", .data)
        case (.authenticate, "OK"), (.data, "OK"):
            guard words.count == 2, words[1].utf8.count == 32, words[1].allSatisfy({ $0.isASCII && $0.isHexDigit }),
                expectedGUID.isEmpty || expectedGUID == words[1]
            else { return false }
            busGUID = String(words[1])
            // Observers hand a descriptor to the agent.
            say("NEGOTIATE_UNIX_FD", .negotiate)
        case (.negotiate, "AGREE_UNIX_FD"), (.negotiate, "ERROR"): say("BEGIN", .begin)
        default: return false
        }
        return true
    }

    /// - Returns: empty as long as it is not complete; nil if it never will be.
    private mutating func readLine(from socket: Int32) -> String? {
        var buffer = [UInt8](repeating: 0, count: UnnamedEntry.longestLine)
        let count = recv(socket, &buffer, buffer.count, Int32(MSG_DONTWAIT))
        if count < 0, errno == EAGAIN || errno == EINTR { return "" }
        guard count > 0 else { return nil }
        received += buffer[..<count]
        guard let end = received.firstIndex(of: UInt8(ascii: "\n")) else {
            return received.count < UnnamedEntry.longestLine ? "" : nil
        }
        guard end == received.count - 1, end > 1, received[end - 1] == UInt8(ascii: "\r") else { return nil }
        defer { received = [] }
        return String(validating: received[..<(end - 1)], as: UTF8.self)
    }
}
