// SPDX-License-Identifier: Apache-2.0

/// The address of a bus on a Unix socket, according to "Server Addresses" in the D-Bus specification.
enum BusAddress {
    static func unix(path: String) -> String {
        "unix:path="
            + path.utf8.map { byte in
                isPlain(byte) ? String(UnicodeScalar(byte)) : "%" + hexadecimal([byte])
            }.joined()
    }

    /// The first socket in an address.
    static func path(of address: String) throws -> String {
        let first = address.prefix { $0 != ";" }
        guard first.hasPrefix("unix:"),
            let option = first.dropFirst(5).split(separator: ",").first(where: { $0.hasPrefix("path=") })
        else { throw TestSupportError("\(address) is not the address of a Unix socket.") }
        var bytes: [UInt8] = []
        var rest = option.utf8.dropFirst(5)
        while let byte = rest.popFirst() {
            let digits = String(decoding: rest.prefix(2), as: UTF8.self)
            if byte == UInt8(ascii: "%"), let value = UInt8(digits, radix: 16) {
                bytes.append(value)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch UnicodeScalar(byte) {
        case "0"..."9", "A"..."Z", "a"..."z", "-", "_", "/", ".": true
        default: false
        }
    }
}

/// Two lowercase digits for each byte.
func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}
