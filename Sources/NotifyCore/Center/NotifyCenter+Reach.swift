// SPDX-License-Identifier: Apache-2.0

import Glibc

extension NotifyCenter {
    /// Whose posts the observers of a center can hear.
    public enum Reach: Hashable, Sendable {
        /// Those of every program on the bus.
        case everyone
        /// Only what this program tells itself, by names that begin with `self.`, because its sandbox lets no other post
        /// in; with the reason and what to do, as one or two sentences.
        case ownProgram(reason: String)
    }

    /// Whose posts the observers of this center can hear.
    ///
    /// In a Flatpak a proxy stands between the program and the bus. Unless the Flatpak has access to the whole bus, the
    /// proxy confirms every registration and then lets no post in, not even the program's own, which come from another
    /// connection. Posts go out in any case, and names that begin with `self.` need no bus.
    /// The answer comes from `/.flatpak-info`, which is read once in a process; see flatpak-metadata(5). Other sandboxes
    /// have no such file: there the answer is ``Reach/everyone``.
    public var reach: Reach {
        guard let flatpak = FlatpakInfo.ofThisProcess else { return .everyone }
        return flatpak.reach(on: bus)
    }

    /// Why nobody's posts of a name can be heard here; nil if they can.
    package func obstacle(toHearing name: NotifyName) -> String? {
        guard name.storage.scope != .process, case .ownProgram(let reason) = reach else { return nil }
        return reason
    }
}

/// What a Flatpak may do, as it is told itself. See flatpak-metadata(5).
package struct FlatpakInfo: Sendable {
    /// That of this process; nil outside a Flatpak. It can't change while a process lives.
    static let ofThisProcess: FlatpakInfo? = text(ofFile: "/.flatpak-info").map { FlatpakInfo($0) }

    /// The value of `sockets` in the group `Context`.
    private var sockets: [Substring] = []

    /// Reads the text of the file.
    package init(_ text: String) {
        var group: Substring = ""
        for line in text.split(separator: "\n") {
            if line.first == "[" {
                group = line
            } else if group == "[Context]", line.hasPrefix("sockets=") {
                sockets = line.dropFirst("sockets=".count).split(separator: ";")
            }
        }
    }

    /// Whom a center on a bus hears.
    package func reach(on bus: NotifyCenter.Bus) -> NotifyCenter.Reach {
        guard let (socket, title) = FlatpakInfo.proxied(bus), !sockets.contains(socket[...]) else { return .everyone }
        return .ownProgram(
            reason: "This Flatpak hears only names that begin with 'self.', because it has no access to the whole "
                + "\(title) bus. To hear what is posted, its manifest needs --socket=\(socket)."
        )
    }

    /// The permission for the whole of a bus, and its title; nil for a bus that Flatpak does not stand in front of.
    private static func proxied(_ bus: NotifyCenter.Bus) -> (socket: String, title: String)? {
        switch bus {
        case .session: return ("session-bus", "session")
        case .system: return ("system-bus", "system")
        case .address(let address):
            for known in [NotifyCenter.Bus.session, .system] where (try? known.resolveAddress()) == address {
                return proxied(known)
            }
            return nil
        }
    }

    private static func text(ofFile path: String) -> String? {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)
        guard file >= 0 else { return nil }
        defer { close(file) }
        // Flatpak writes one to two kilobytes.
        let bytes = [UInt8](unsafeUninitializedCapacity: 65_536) { buffer, count in
            while count < buffer.count {
                let rest = UnsafeMutableBufferPointer(rebasing: buffer[count...])
                let result = read(file, rest.baseAddress, rest.count)
                guard result > 0 || result < 0 && errno == EINTR else { break }
                count += max(0, result)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
