// SPDX-License-Identifier: Apache-2.0

import Glibc

/// How posts of others get to a program.
package enum SandboxPassage: Equatable, Sendable {
    /// The bus passes them on.
    case open
    /// A proxy keeps them back, and a relay may hear for the program.
    case relay
    /// A proxy keeps them back.
    case closed(reason: String)

    /// How it is on a bus of which a Flatpak may not use all.
    ///
    /// - Parameter mayTalk: whether it may talk to the relay.
    fileprivate static func behindProxy(mayTalk: Bool) -> SandboxPassage {
        mayTalk
            ? .relay
            : .closed(
                reason: "This Flatpak lacks the permission --talk-name=\(RelayInterface.name) in its manifest, so "
                    + "it hears only names that begin with 'self.'. The machine needs NotifyBus, too."
            )
    }

    /// What is to be said where the relay does not hear for the program.
    ///
    /// - Parameter fault: what the relay does, as the end of a sentence; nil if there is none.
    static func reasonWithoutRelay(_ fault: String?) -> String {
        let beginning = "This program hears only names that begin with 'self.', because \(RelayInterface.name) "
        if let fault { return beginning + fault }
        let machine = "the machine needs NotifyBus with its agent, whose settings must not say 'relay = none'."
        // A Flatpak says itself that it has the permission.
        return wish == true
            ? beginning + "does not answer. Its sandbox must allow it to talk to that name, as "
                + "--talk-name=\(RelayInterface.name) does for a Flatpak; and \(machine)"
            : beginning + "is not served: \(machine)"
    }
}

extension NotifyCenter.Bus {
    /// How posts of others get to this process. It can't change while a process lives, except for buses that come later.
    var passage: SandboxPassage {
        if process != nil { return .open }
        switch SandboxPassage.wish {
        case true where self != .system: return .relay
        case false: return .open
        default: return FlatpakInfo.ofThisProcess?.passage(on: self) ?? .open
        }
    }

    /// Whether this process may talk to every connection on it, so that a connection that does not answer does not exist.
    package var isWhole: Bool { passage == .open }
}

extension SandboxPassage {
    /// What `NOTIFYBUS_RELAY` says; nil if it says neither `yes` nor `no`.
    fileprivate static let wish: Bool? = getenv("NOTIFYBUS_RELAY").flatMap { value in
        switch String(cString: value) {
        case "yes": true
        case "no": false
        default: nil
        }
    }
}

/// What a Flatpak may do, as it is told itself. See flatpak-metadata(5).
package struct FlatpakInfo: Sendable {
    /// That of this process; nil outside a Flatpak. It can't change while a process lives.
    fileprivate static let ofThisProcess: FlatpakInfo? = text(ofFile: "/.flatpak-info").map { FlatpakInfo($0) }

    /// The value of `sockets` in the group `Context`.
    private var sockets: [Substring] = []
    /// The buses on which it may talk to the relay.
    private var relays: Set<String> = []

    /// Reads the text of the file.
    package init(_ text: String) {
        var group: Substring = ""
        for line in text.split(separator: "\n") {
            if line.first == "[" {
                group = line
            } else if group == "[Context]", line.hasPrefix("sockets=") {
                sockets = line.dropFirst("sockets=".count).split(separator: ";")
            } else if let bus = FlatpakInfo.policies[group], FlatpakInfo.letsTalk(line) {
                relays.insert(bus)
            }
        }
    }

    private static let policies: [Substring: String] = [
        "[Session Bus Policy]": "session-bus", "[System Bus Policy]": "system-bus",
    ]

    /// Whether a line of a policy, as `org.example.A=talk` or `org.example.*=own`, lets it talk to the relay.
    private static func letsTalk(_ line: Substring) -> Bool {
        let parts = line.split(separator: "=", maxSplits: 1)
        guard parts.count == 2, parts[1] == "talk" || parts[1] == "own" else { return false }
        if parts[0] == RelayInterface.name { return true }
        return parts[0].hasSuffix(".*") && RelayInterface.name.hasPrefix(parts[0].dropLast())
    }

    /// How posts get to it on a bus.
    package func passage(on bus: NotifyCenter.Bus) -> SandboxPassage {
        guard let socket = FlatpakInfo.proxied(bus), !sockets.contains(socket[...]) else { return .open }
        return .behindProxy(mayTalk: relays.contains(socket))
    }

    /// The permission for the whole of a bus; nil for a bus that Flatpak does not stand in front of.
    private static func proxied(_ bus: NotifyCenter.Bus) -> String? {
        switch bus.kind {
        case .session: return "session-bus"
        case .system: return "system-bus"
        case .address(let address):
            for known in [NotifyCenter.Bus.session, .system] where (try? known.resolveAddress()) == address {
                return proxied(known)
            }
            return nil
        }
    }

    private static func text(ofFile path: String) -> String? {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
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
