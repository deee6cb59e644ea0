// SPDX-License-Identifier: Apache-2.0

/// Where the broker listens.
package struct BrokerAddress: Hashable, Sendable, CustomStringConvertible {
    /// A host's name or address, or the path of a socket.
    package let host: String
    /// 0 for a socket.
    package let port: Int32
    /// Whether to speak TLS.
    package let isEncrypted: Bool

    /// Reads `mqtt://HOST[:PORT]`, `mqtts://HOST[:PORT]` or an absolute path; nil if it is none of them.
    package init?(_ text: String) {
        if text.utf8.first == UInt8(ascii: "/") {
            (host, port, isEncrypted) = (text, 0, false)
            return
        }
        let schemes: [(String, Int32, Bool)] = [("mqtt://", 1883, false), ("mqtts://", 8883, true)]
        guard let (scheme, usual, isEncrypted) = schemes.first(where: { text.utf8.starts(with: $0.0.utf8) }) else {
            return nil
        }
        let rest = text.utf8.dropFirst(scheme.utf8.count)
        let host: Substring.UTF8View
        var after: Substring.UTF8View
        if rest.first == UInt8(ascii: "["), let end = rest.firstIndex(of: UInt8(ascii: "]")) {
            // An IPv6 address: see RFC 3986, section 3.2.2.
            host = rest[rest.index(after: rest.startIndex)..<end]
            after = rest[rest.index(after: end)...]
        } else {
            let end = rest.firstIndex(of: UInt8(ascii: ":")) ?? rest.endIndex
            host = rest[..<end]
            after = rest[end...]
        }
        var port = usual
        if after.first == UInt8(ascii: ":") {
            guard let number = UInt16(String(decoding: after.dropFirst(), as: UTF8.self)), number > 0 else {
                return nil
            }
            port = Int32(number)
            after = after[after.endIndex...]
        }
        // A broker's address has no path, query or user.
        let isHost = !host.isEmpty && host.allSatisfy { $0 > 0x20 && $0 != 0x7F && !"/@?#[]".utf8.contains($0) }
        guard isHost, after.isEmpty, rest.last != UInt8(ascii: ":") else { return nil }
        self.host = String(decoding: host, as: UTF8.self)
        self.port = port
        self.isEncrypted = isEncrypted
    }

    /// Whether data sent there stays on this machine.
    package var isLocal: Bool {
        port == 0 || host == "localhost" || host == "::1"
            || host.utf8.starts(with: "127.".utf8) && host.utf8.allSatisfy { $0 < 0x3A }
    }

    package var description: String {
        if port == 0 { return host }
        let host = host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]" : host
        return "\(isEncrypted ? "mqtts" : "mqtt")://\(host):\(port)"
    }
}
