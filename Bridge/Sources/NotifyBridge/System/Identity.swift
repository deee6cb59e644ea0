// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The folder in which a bridge keeps its origin and, with `catch-up`, the last stamps.
package struct StateFolder: Sendable {
    package let path: String

    package init(path: String) {
        self.path = path
    }

    /// `/var/lib/notifybus` for the system bus, otherwise the user's. See the XDG Base Directory Specification.
    package init(forSystem isSystem: Bool) throws(ConfigurationError) {
        if isSystem {
            path = "/var/lib/notifybus"
        } else if let folder = Environment["XDG_STATE_HOME"] ?? Environment["HOME"].map({ $0 + "/.local/state" }),
            folder.utf8.first == UInt8(ascii: "/")
        {
            path = folder + "/notifybus"
        } else {
            throw ConfigurationError("There is nowhere to keep this bridge's id: set XDG_STATE_HOME or HOME.")
        }
    }

    /// The origin of this user on this machine, generated on first use.
    ///
    /// A copied disk contains the origin of another machine; in that case a new one is generated.
    package func origin() throws(ConfigurationError) -> Origin {
        let file = path + "/bridge-id"
        let owner = StateFolder.owner()
        do {
            if let text = try? SmallFile.text(file) {
                let fields = text.split(whereSeparator: \.isWhitespace)
                if fields.count == 2, fields[1] == owner, let origin = Origin(Array(fields[0].utf8)) { return origin }
            }
            // From getrandom(2).
            var generator = SystemRandomNumberGenerator()
            let origin = Origin(high: generator.next(), low: generator.next())
            try SmallFile.makeFolder(path)
            try SmallFile.replace(file, with: "\(origin) \(owner)\n")
            return origin
        } catch {
            throw ConfigurationError("This bridge's id in \(file) \(error)")
        }
    }

    /// A hash of the user and the machine's id, which must not be disclosed.
    private static func owner() -> String {
        let machine =
            (try? SmallFile.text("/etc/machine-id")) ?? (try? SmallFile.text("/var/lib/dbus/machine-id")) ?? ""
        // FNV-1a: it only has to differ between machines.
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in "\(machine)\0\(geteuid())\0notify-bridge".utf8 {
            hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01b3
        }
        return String(hash, radix: 16)
    }
}
