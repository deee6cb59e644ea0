// SPDX-License-Identifier: Apache-2.0

package import CommandSupport
import Glibc
package import NotifyCore

/// The folder in which a bridge keeps its origin and, with `catch-up`, the last stamps.
package struct StateFolder: Sendable {
    package let path: String

    package init(path: String) {
        self.path = path
    }

    /// `/var/lib/notifybus` for the system bus, otherwise the user's. See the XDG Base Directory Specification.
    package init(for bus: NotifyCenter.Bus) throws(ConfigurationError) {
        let variable = ConfigurationFile.variable
        if bus == .system {
            path = "/var/lib/notifybus"
        } else if let folder = variable("XDG_STATE_HOME") ?? variable("HOME").map({ $0 + "/.local/state" }),
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
        let owner = StateFolder.owner()
        if let text = text(of: "bridge-id") {
            let fields = text.split(whereSeparator: \.isWhitespace)
            if fields.count == 2, fields[1] == owner, let origin = Origin(Array(fields[0].utf8)) { return origin }
        }
        // From getrandom(2).
        var generator = SystemRandomNumberGenerator()
        let origin = Origin(high: generator.next(), low: generator.next())
        do throws(TextFile.Fault) {
            try StateFolder.create(path)
            try replace("bridge-id", with: "\(origin) \(owner)\n")
        } catch {
            throw ConfigurationError("This bridge's id in \(path)/bridge-id \(error)")
        }
        return origin
    }

    /// A hash of the user and the machine's id, which must not be disclosed.
    private static func owner() -> String {
        let machine =
            (try? TextFile.text(of: "/etc/machine-id")) ?? (try? TextFile.text(of: "/var/lib/dbus/machine-id")) ?? ""
        // FNV-1a: it only has to differ between machines.
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in "\(machine)\0\(geteuid())\0notify-bridge".utf8 {
            hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01b3
        }
        return String(hash, radix: 16)
    }

    /// The text of a file; nil if it can't be read.
    func text(of file: String, limit: Int = 1_048_576) -> String? {
        try? TextFile.text(of: "\(path)/\(file)", limit: limit)
    }

    /// Atomically writes a file that only this user can read.
    func replace(_ file: String, with text: String) throws(TextFile.Fault) {
        let path = "\(path)/\(file)"
        let draft = path + ".new"
        // It may be left over from an earlier write, or be anything else.
        unlink(draft)
        let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw TextFile.Fault("can't be written", errno: errno) }
        let result = StandardStreams.write(text, to: descriptor)
        var code: Int32 = if case .failed(let code) = result { code } else { 0 }
        close(descriptor)
        if code == 0, rename(draft, path) != 0 { code = errno }
        guard code == 0 else {
            unlink(draft)
            throw TextFile.Fault("can't be written", errno: code)
        }
    }

    /// Creates a folder and its parents, for this user only.
    private static func create(_ path: String) throws(TextFile.Fault) {
        if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
        guard errno == ENOENT, let slash = path.lastIndex(of: "/"), slash != path.startIndex else {
            throw TextFile.Fault("can't be created", errno: errno)
        }
        try create(String(path[..<slash]))
        if mkdir(path, 0o700) != 0, errno != EEXIST { throw TextFile.Fault("can't be created", errno: errno) }
    }
}
