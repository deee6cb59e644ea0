// SPDX-License-Identifier: Apache-2.0

import FuzzDriver
import Glibc
import NotifyCore
import NotifyNames

/// A bus that is not what it should be: every client is let in, and from then on hears what the fuzzer chooses. It
/// stands for a machine on which all others, the services of the system included, say what they like.
final class HostileBus {
    /// A connection of the code that is tested.
    final class Client {
        let descriptor: Int32
        let name: String
        let reader = MessageReader()
        var isLetIn = false
        /// Whether Hello has been answered. No bus passes anything on before that.
        var hasName = false
        var lines: [UInt8] = []
        var output: [UInt8] = []
        var owns: Set<String> = []
        /// Calls of it that have no answer yet.
        var calls: [Call] = []
        /// The reply that shows that it has read everything before.
        var expected: UInt32?
        var isOpen = true

        init(_ descriptor: Int32, name: String) {
            self.descriptor = descriptor
            self.name = name
        }
    }

    struct Call {
        let serial: UInt32
        let destination: String
        let path: String
        let interface: String
        let member: String
        let arguments: [BusValue]
    }

    let address: String
    private let listener: Int32
    private(set) var clients: [Client] = []
    private var lastSerial: UInt32 = 0
    private var lastName = 0
    /// Is asked what to reply to a call; nil leaves it unanswered for now.
    var reply: (Call, Client) -> [ForgedMessage]? = { _, _ in nil }

    static let busName = "org.freedesktop.DBus"

    init(path: String) {
        address = "unix:path=\(path)"
        listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        var name = sockaddr_un()
        name.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
        unlink(path)
        let status = withUnsafePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard status == 0, listen(listener, 128) == 0 else { fail("no socket at \(path)") }
    }

    // MARK: - Messages

    func message(_ kind: ForgedMessage.Kind, from sender: String) -> ForgedMessage {
        lastSerial &+= 1
        if lastSerial == 0 { lastSerial = 1 }
        return ForgedMessage(kind: kind, serial: lastSerial, sender: sender)
    }

    func answer(_ call: Call, from sender: String, _ arguments: [BusValue]) -> ForgedMessage {
        var reply = message(.reply, from: sender)
        reply.replySerial = call.serial
        reply.arguments = arguments
        return reply
    }

    func error(_ call: Call, from sender: String, _ name: String, _ text: String) -> ForgedMessage {
        var reply = message(.error, from: sender)
        reply.replySerial = call.serial
        reply.errorName = name
        reply.arguments = [.string(text)]
        return reply
    }

    func signal(_ interface: String, _ member: String, from sender: String, at path: String, _ arguments: [BusValue])
        -> ForgedMessage
    {
        var signal = message(.signal, from: sender)
        (signal.path, signal.interface, signal.member, signal.arguments) = (path, interface, member, arguments)
        return signal
    }

    func post(_ name: NotifyName, from sender: String) -> ForgedMessage {
        // The only part of the names here that is escaped.
        let parts = name.string.split(separator: ".").map { $0 == "0" ? "_30" : $0 }
        let interface = "org.notifybus.n." + parts.joined(separator: ".")
        return signal(interface, "Posted", from: sender, at: WireFormat.path(for: name), [.string(name.string)])
    }

    func send(_ message: ForgedMessage, to client: Client) {
        guard client.isOpen, client.isLetIn else { return }
        client.output += message.bytes
        flush(client)
    }

    /// The connection that owns a name.
    func owner(of name: String) -> Client? {
        clients.first { $0.isOpen && ($0.owns.contains(name) || $0.name == name) }
    }

    // MARK: - Work

    /// Does what there is to do until every client has read everything that it was sent.
    ///
    /// A client that does not get that far in a minute is a finding.
    func settle(_ description: @autoclosure () -> String) {
        for client in clients where client.isOpen && client.hasName && client.expected == nil {
            var ping = message(.call, from: ":1.0")
            (ping.path, ping.interface, ping.member) = ("/", "org.freedesktop.DBus.Peer", "Ping")
            client.expected = ping.serial
            send(ping, to: client)
        }
        work(until: { !clients.contains { $0.isOpen && ($0.expected != nil || !$0.hasName) } }, description())
    }

    /// Does what there is to do until a condition holds, at most a minute.
    func work(until condition: () -> Bool, _ description: @autoclosure () -> String) {
        var patience = 600
        while !condition() {
            if !work(100) { patience -= 1 }
            if patience == 0 { fail("nothing comes any more: \(description())") }
        }
    }

    /// Accepts, reads and writes once.
    ///
    /// - Returns: whether there was anything to do.
    @discardableResult
    func work(_ milliseconds: Int32) -> Bool {
        var polled = [pollfd(fd: listener, events: Int16(POLLIN), revents: 0)]
        let open = clients.filter(\.isOpen)
        polled += open.map {
            pollfd(fd: $0.descriptor, events: Int16(POLLIN | ($0.output.isEmpty ? 0 : POLLOUT)), revents: 0)
        }
        guard poll(&polled, nfds_t(polled.count), milliseconds) > 0 else { return false }
        if polled[0].revents != 0 { accept() }
        for (client, entry) in zip(open, polled.dropFirst()) where entry.revents != 0 {
            if entry.revents & Int16(POLLOUT) != 0 { flush(client) }
            if entry.revents & ~Int16(POLLOUT) != 0 { read(client) }
        }
        return true
    }

    private func accept() {
        while true {
            let descriptor = Glibc.accept(listener, nil, nil)
            guard descriptor >= 0 else { return }
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
            lastName += 1
            clients.append(Client(descriptor, name: ":1.\(1_000 + lastName)"))
        }
    }

    private func flush(_ client: Client) {
        while client.isOpen, !client.output.isEmpty {
            let count = client.output.withUnsafeBytes {
                Glibc.send(client.descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count > 0 {
                client.output.removeFirst(count)
            } else if errno == EAGAIN {
                return
            } else if errno != EINTR {
                return close(client)
            }
        }
    }

    private func read(_ client: Client) {
        let bytes = [UInt8](unsafeUninitializedCapacity: 65_536) { buffer, count in
            count = max(0, recv(client.descriptor, buffer.baseAddress, buffer.count, 0))
        }
        if bytes.isEmpty { return close(client) }
        if client.isLetIn {
            bytes.withUnsafeBytes(client.reader.feed)
        } else {
            client.lines += bytes
            authenticate(client)
        }
        while client.isOpen, client.isLetIn {
            guard case .message(let message) = client.reader.next() else { break }
            handle(message, of: client)
        }
    }

    /// See the D-Bus specification, "Authentication Protocol".
    private func authenticate(_ client: Client) {
        while !client.isLetIn, let end = client.lines.firstIndex(of: UInt8(ascii: "\n")) {
            let line = String(decoding: client.lines[..<end].drop { $0 == 0 }, as: UTF8.self)
            client.lines.removeFirst(end + 1)
            if line.hasPrefix("AUTH") {
                client.output += Array("OK 0123456789abcdef0123456789abcdef\r\n".utf8)
            } else if line.hasPrefix("NEGOTIATE") {
                client.output += Array("AGREE_UNIX_FD\r\n".utf8)
            } else if line.hasPrefix("BEGIN") {
                client.isLetIn = true
                client.lines.withUnsafeBytes(client.reader.feed)
                client.lines = []
            }
        }
        flush(client)
    }

    private func handle(_ message: BusMessage, of client: Client) {
        switch message.kind {
        case .reply, .error: if message.replySerial == client.expected { client.expected = nil }
        case .call where message.wantsReply:
            func text(_ pointer: UnsafePointer<CChar>?) -> String { pointer.map { String(cString: $0) } ?? "" }
            var values = BusValueReader(message.bodyReader)
            let call = Call(
                serial: message.serial,
                destination: text(message.destination),
                path: text(message.path),
                interface: text(message.interface),
                member: text(message.member),
                arguments: values.values(message.signature) ?? []
            )
            if let replies = reply(call, client) {
                for reply in replies { send(reply, to: client) }
                client.hasName = client.hasName || call.member == "Hello"
            } else {
                client.calls.append(call)
            }
        default: break
        }
    }

    private func close(_ client: Client) {
        guard client.isOpen else { return }
        client.isOpen = false
        Glibc.close(client.descriptor)
    }

    /// Ends all connections.
    func hangUp() {
        for client in clients { close(client) }
        clients = []
    }

    /// No client can connect any more.
    func end() { Glibc.close(listener) }
}
