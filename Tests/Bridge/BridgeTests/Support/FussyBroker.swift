// SPDX-License-Identifier: Apache-2.0

import Synchronization
import TestSupport

/// A small MQTT 5 broker that does not take everything, unlike Mosquitto. It ends with the last reference to it.
final class FussyBroker: Sendable {
    /// What it does not take, and what it does then.
    enum Whim {
        /// It announces its limit, and ends the connection if a packet is larger.
        case maximum(Int)
        /// The same without a word before.
        case secretMaximum(Int)
        /// It ends the connection by a DISCONNECT because of this topic or filter.
        case refuses(String)
        /// It closes the connection because of a topic with more slashes, without a reason.
        case slashes(Int)
        /// It keeps nothing.
        case keepsNothing
        /// It takes no filters with wildcards.
        case hasNoWildcards
        /// Its answers have a property that MQTT does not know, until this file exists.
        case unknownProperty(until: String)
        /// It answers the first messages to this topic with such a property.
        case unknownPropertyAfter(String, times: Int)

        fileprivate var arguments: [String] {
            switch self {
            case .maximum(let size): ["maximum=\(size)", "size=\(size)"]
            case .secretMaximum(let size): ["size=\(size)"]
            case .refuses(let topic): ["refuses=\(topic)"]
            case .slashes(let count): ["slashes=\(count)"]
            case .keepsNothing: ["keeps=0"]
            case .hasNoWildcards: ["wildcards=0"]
            case .unknownProperty(let file): ["until=\(file)", "times=1000000", "bad=CONNACK"]
            case .unknownPropertyAfter(let topic, let times): ["times=\(times)", "bad=\(topic)"]
            }
        }
    }

    let port: Int
    private let process: RunningCommand

    init(_ whims: [Whim]) throws {
        port = try freePort()
        process = try start(python, ["-c", Self.script, "\(port)"] + whims.flatMap(\.arguments), input: .null)
        try process.waitForOutput(containing: "ready")
    }

    var address: String { "mqtt://127.0.0.1:\(port)" }

    /// How often it has reported this.
    func count(_ line: String) throws -> Int {
        try process.waitForOutput(containing: "ready").split(separator: "\n").count { $0 == line }
    }

    /// Each client has a thread; a lock makes one packet after the other.
    private static let script = #"""
        import os, socket, struct, sys, threading
        port, given = int(sys.argv[1]), dict(word.split("=", 1) for word in sys.argv[2:])
        lock, clients, left = threading.Lock(), {}, [int(given.get("times", 0))]
        UNKNOWN = bytes([2, 0x7E, 0])

        def say(*words):
            print(*words, flush=True)

        def exactly(stream, count):
            data = stream.read(count)
            if len(data) < count: raise EOFError
            return data

        def read(stream):
            kind, length, shift = exactly(stream, 1)[0], 0, 0
            while True:
                byte = exactly(stream, 1)[0]
                length |= (byte & 127) << shift
                shift += 7
                if byte < 128: return kind, exactly(stream, length), 1 + shift // 7 + length

        def packet(kind, body):
            size, length = bytearray(), len(body)
            while True:
                size.append(length & 127 | (128 if length > 127 else 0))
                length >>= 7
                if not length: return bytes([kind]) + bytes(size) + body

        def matches(topic, name):
            topic, name = topic.split("/"), name.split("/")
            if topic[-1] == "#": return name[:len(topic) - 1] == topic[:-1]
            return topic == name

        def properties(body, at):
            length, shift = 0, 0
            while True:
                byte = body[at]
                at += 1
                length |= (byte & 127) << shift
                shift += 7
                if byte < 128: return at + length

        def text(body, at):
            end = at + 2 + struct.unpack_from(">H", body, at)[0]
            return body[at + 2:end].decode(), end

        def is_bad(what):
            if given.get("bad") != what or not left[0] or os.path.exists(given.get("until", "")): return False
            left[0] -= 1
            say("bad")
            return True

        def refuse(client, code):
            say("refused")
            client.sendall(packet(0xE0, bytes([code])))
            raise EOFError

        def handle(client, kind, body, size):
            if size > int(given.get("size", 1 << 28)): refuse(client, 0x95)
            if kind >> 4 == 1:
                say("connected")
                if is_bad("CONNACK"): return client.sendall(packet(0x20, bytes([0, 0]) + UNKNOWN))
                facts = b""
                if "maximum" in given: facts += struct.pack(">BI", 39, int(given["maximum"]))
                if "keeps" in given: facts += bytes([37, 0])
                if "wildcards" in given: facts += bytes([40, 0])
                client.sendall(packet(0x20, bytes([0, 0, len(facts)]) + facts))
            elif kind >> 4 == 3:
                topic, at = text(body, 0)
                if kind & 1 and "keeps" in given: refuse(client, 0x9A)
                if topic == given.get("refuses"): refuse(client, 0x90)
                if topic.count("/") > int(given.get("slashes", 1 << 16)):
                    say("refused")
                    raise EOFError
                if is_bad(topic): return client.sendall(packet(0x30, b"\0\1a" + UNKNOWN))
                say("took", topic)
                for other, filters in clients.items():
                    if other is not client and any(matches(one, topic) for one in filters):
                        other.sendall(packet(0x30, body[:at] + b"\0" + body[properties(body, at):]))
            elif kind >> 4 in (8, 10):
                at, found = properties(body, 2), []
                while at < len(body):
                    topic, at = text(body, at)
                    if kind >> 4 == 8: at += 1
                    found.append(topic)
                if given.get("refuses") in found: refuse(client, 0x87)
                if kind >> 4 == 8:
                    if "wildcards" in given and any("#" in one for one in found): refuse(client, 0xA2)
                    clients[client] += found
                client.sendall(packet(0x90 if kind >> 4 == 8 else 0xB0, body[:2] + b"\0" + bytes(len(found))))
            elif kind >> 4 == 12:
                client.sendall(packet(0xD0, b""))
            elif kind >> 4 == 14:
                raise EOFError

        def serve(client):
            stream = client.makefile("rb")
            try:
                while True:
                    kind, body, size = read(stream)
                    with lock: handle(client, kind, body, size)
            except (EOFError, OSError):
                pass
            with lock: del clients[client]
            # Closed with something unread, the connection would be reset, and sent packets might not be read.
            try:
                client.shutdown(socket.SHUT_WR)
                while client.recv(65536): pass
            except OSError:
                pass
            stream.close()
            client.close()

        server = socket.create_server(("127.0.0.1", port))
        say("ready")
        while True:
            client, _ = server.accept()
            with lock: clients[client] = []
            threading.Thread(target=serve, args=(client,), daemon=True).start()
        """#
}
