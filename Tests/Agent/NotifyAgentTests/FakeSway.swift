// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyAgent
import Synchronization
import TestSupport

extension JSONValue {
    init?(_ bytes: [UInt8]) {
        var reader = JSONReader()
        guard reader.take(bytes[...]), let value = reader.finish() else { return nil }
        self = value
    }
}

/// A socket that takes the place of sway's. See sway-ipc(7).
final class FakeSway: Sendable {
    let path: String
    private let listener: Int32

    init() throws {
        path = "/tmp/notifybus-sway-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"
        listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = UInt16(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let descriptor = listener
        let status = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard status == 0, listen(listener, 8) == 0 else { throw TestSupportError("Can't listen at \(path).") }
    }

    deinit {
        close(listener)
        unlink(path)
    }

    /// Waits for a connection.
    func accept(timeout: Duration = .patience) throws -> Talk {
        var source = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
        guard poll(&source, 1, Int32(timeout.components.seconds) * 1_000) == 1 else {
            throw TestSupportError("Nobody has connected to \(path).")
        }
        return Talk(Glibc.accept(listener, nil, nil))
    }

    /// One connection.
    final class Talk {
        private let socket: Int32
        private var reader = SwayReader()
        private var messages: [SwayWire.Message] = []

        init(_ socket: Int32) {
            self.socket = socket
            var limit = timeval(tv_sec: 20, tv_usec: 0)
            setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
            setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        }

        deinit { close(socket) }

        /// The next message; nil if the other side has disconnected.
        func next() throws -> SwayWire.Message? {
            while true {
                if !messages.isEmpty { return messages.removeFirst() }
                var chunk = [UInt8](repeating: 0, count: 4_096)
                let count = recv(socket, &chunk, chunk.count, 0)
                if count < 0, errno == EAGAIN { throw TestSupportError("Nothing has come.") }
                guard count > 0 else { return nil }
                messages += try reader.take(Array(chunk[..<count]))
            }
        }

        func send(_ bytes: [UInt8]) {
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes { Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
                guard count > 0 else { return }
                rest = rest.dropFirst(count)
            }
        }

        func send(_ kind: UInt32, _ payload: String) {
            send(SwayWire.message(kind, payload))
        }

        /// Answers a subscription, and then the request for the tree.
        func greet(focused process: pid_t) throws {
            guard let request = try next(), request.kind == SwayWire.Kind.subscribe else {
                throw TestSupportError("The first message is not a subscription.")
            }
            send(SwayWire.Kind.subscribe, #"{"success": true}"#)
            try answerTree(focused: process)
        }

        func answerTree(focused process: pid_t) throws {
            guard try next()?.kind == SwayWire.Kind.tree else {
                throw TestSupportError("The second message doesn't request the tree.")
            }
            send(SwayWire.Kind.tree, FakeSway.tree(focused: process))
        }

        func focus(_ process: pid_t, _ application: String = "org.example.Window") {
            send(SwayWire.Kind.windowEvent, FakeSway.focusEvent(process, application))
        }
    }

    static func focusEvent(_ process: pid_t, _ application: String = "org.example.Window") -> String {
        #"{"change": "focus", "container": {"id": 7, "type": "con", "focused": true, "name": "\u00e9 \ud83d\ude00", "#
            + #""nodes": [], "floating_nodes": [], "rect": {"x": -1, "y": 2.5e0}, "#
            + #""app_id": "\#(application)", "pid": \#(process)}}"#
    }

    static func tree(focused process: pid_t) -> String {
        let window = #"{"id": 9, "type": "con", "focused": \#(process > 0), "pid": \#(max(1, process)), "nodes": []}"#
        return #"{"id": 1, "type": "root", "focused": false, "nodes": [{"id": 3, "type": "output", "nodes": ["#
            + #"{"id": 4, "type": "workspace", "focused": \#(process == 0), "nodes": [], "floating_nodes": [\#(window)]}]}]}"#
    }
}
