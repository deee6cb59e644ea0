// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A socket with a server that is no bus: what a program believes that connects to it.
public final class ScriptedServer: Sendable {
    /// What is done with a connection, on a thread. It ends with it.
    public typealias Script = @Sendable (UnixStream) throws -> Void

    /// Its address, as in `DBUS_SESSION_BUS_ADDRESS`.
    public let address: String
    /// How many connections have been accepted.
    public let accepted = Counter()

    private let folder: String
    private let listener: Int32

    /// - Parameters:
    ///   - backlog: how many connections may wait to be accepted, and one more.
    ///   - scripts: one for each connection; further ones are closed.
    public init(backlog: Int32 = 16, _ scripts: [Script]) throws {
        folder = try makeFolder()
        address = BusAddress.unix(path: "\(folder)/bus")
        let listener = try listen(at: "\(folder)/bus", backlog: backlog)
        self.listener = listener
        startThread { [accepted] in
            while case let client = accept(listener, nil, nil), client >= 0 {
                let stream = UnixStream(descriptor: client)
                let number = accepted.value
                accepted.add()
                try? number < scripts.count ? scripts[number](stream) : ()
            }
            Glibc.close(listener)
        }
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
        removeFolder(folder)
    }

    /// Another connection to it that stays unused; nil if there is no room.
    public static func fill(_ address: String) -> UnixStream? {
        guard var name = try? socketAddress(BusAddress.path(of: address)) else { return nil }
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let descriptor = socket(AF_UNIX, kind, 0)
        let result = withUnsafePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        if result == 0 { return UnixStream(descriptor: descriptor) }
        close(descriptor)
        return nil
    }
}

extension UnixStream {
    /// Says something at once, whatever becomes of it.
    public func say(_ text: String) throws { try send(Array(text.utf8)) }

    /// Reads up to the end of a line, and what has come with it.
    @discardableResult
    public func hear() throws -> String {
        var heard: [UInt8] = []
        while !heard.contains(UInt8(ascii: "\n")) {
            let more = try receive(deadline: Deadline(after: .patience))
            if more.isEmpty { throw TestSupportError("The connection has ended.") }
            heard += more
        }
        return String(decoding: heard, as: UTF8.self)
    }

    /// Waits until the other side has closed the connection.
    public func waitForEnd() throws {
        while try !receive(deadline: Deadline(after: .patience)).isEmpty {}
    }
}
