// SPDX-License-Identifier: Apache-2.0

/// Determines which application a process belongs to, from texts.
package enum AppIdentity {
    /// The application in the name of a systemd unit, by the convention for desktop sessions; nil if it does not follow
    /// that.
    ///
    /// `app[-LAUNCHER]-ID-RANDOM.scope`, `app[-LAUNCHER]-ID[@RANDOM].service`; a `-` inside a part is written `\x2d`.
    package static func application(ofUnit unit: String) -> String? {
        let parts: [Substring]
        if let stem = unit.removing(suffix: ".scope") {
            let all = stem.split(separator: "-", omittingEmptySubsequences: false)
            guard all.count >= 3, all.first == "app" else { return nil }
            parts = Array(all.dropFirst().dropLast())
        } else if let stem = unit.removing(suffix: ".service") {
            let beforeInstance = stem.prefix { $0 != "@" }
            let all = beforeInstance.split(separator: "-", omittingEmptySubsequences: false)
            guard all.count >= 2, all.first == "app" else { return nil }
            parts = Array(all.dropFirst())
        } else {
            return nil
        }
        // One part is the application, two are launcher and application.
        guard (1...2).contains(parts.count), let id = parts.last.flatMap({ unescape($0) }), !id.isEmpty else {
            return nil
        }
        return id
    }

    /// The application in the path of a cgroup: that of the innermost unit with one.
    package static func application(ofCgroup path: String) -> String? {
        for part in path.split(separator: "/").reversed() {
            if let id = application(ofUnit: String(part)) { return id }
        }
        return nil
    }

    /// The innermost unit in the path of a cgroup, and whether a user's service manager runs it; nil if there is none.
    package static func unit(ofCgroup path: String) -> (name: String, isOfUser: Bool)? {
        let parts = path.split(separator: "/")
        guard let place = parts.lastIndex(where: { $0.hasSuffix(".service") || $0.hasSuffix(".scope") }) else {
            return nil
        }
        let isOfUser = parts[..<place].contains { part in
            part.utf8.starts(with: "user@".utf8) && part.hasSuffix(".service")
        }
        return (String(parts[place]), isOfUser)
    }

    /// The login session in the path of a cgroup, which systemd calls `session-ID.scope`.
    package static func session(ofCgroup path: String) -> String? {
        for part in path.split(separator: "/") where part.utf8.starts(with: "session-".utf8) {
            if let id = String(part).removing(suffix: ".scope")?.dropFirst("session-".count), !id.isEmpty {
                return String(id)
            }
        }
        return nil
    }

    /// The application of the first of these cgroups that has one; empty if none does.
    package static func application(ofCgroups paths: [String]) -> String {
        paths.lazy.compactMap { application(ofCgroup: $0) }.first ?? ""
    }

    /// The login session in the first of these cgroups that has one; nil if none does.
    package static func session(ofCgroups paths: [String]) -> String? {
        paths.lazy.compactMap { session(ofCgroup: $0) }.first
    }

    /// The snap to which an AppArmor label confines a process, as in `snap.firefox.firefox (enforce)`; nil if it is
    /// another kind of label, or does not enforce.
    package static func snap(inLabel label: String) -> String? {
        guard label.utf8.starts(with: "snap.".utf8), label.hasSuffix(" (enforce)") else { return nil }
        return label.dropFirst(5).split(separator: ".").first.map { String($0) }
    }

    /// Whether a cgroup is one that Flatpak creates for a sandboxed application.
    package static func isFlatpak(cgroup path: String) -> Bool {
        path.split(separator: "/").contains { part in
            part.utf8.starts(with: "app-flatpak-".utf8) && part.hasSuffix(".scope")
        }
    }

    /// The application of a process that a snap or Flatpak confines; nil if neither does.
    ///
    /// - Parameters:
    ///   - label: its AppArmor label.
    ///   - cgroups: `/proc/PID/cgroup`.
    package static func sandboxedApplication(label: String, cgroups text: String) -> String? {
        if let snap = snap(inLabel: label) { return snap }
        let found = cgroups(in: text)
        let flatpak = [found.unified, found.systemd].compactMap { $0 }.first(where: isFlatpak)
        return flatpak.flatMap { application(ofCgroup: $0) }
    }

    /// The paths of a process in the unified hierarchy and in systemd's own, from `/proc/PID/cgroup`. See cgroups(7).
    package static func cgroups(in text: String) -> (unified: String?, systemd: String?) {
        var unified: String?
        var systemd: String?
        for line in text.split(separator: "\n") {
            let fields = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard fields.count == 3 else { continue }
            if fields[0] == "0", fields[1].isEmpty { unified = String(fields[2]) }
            if fields[1] == "name=systemd" { systemd = String(fields[2]) }
        }
        return (unified, systemd)
    }

    /// Undoes systemd's escaping; nil if the result is not text.
    private static func unescape(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = text.utf8
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "\\") else {
                bytes.append(byte)
                continue
            }
            guard rest.popFirst() == UInt8(ascii: "x"), let high = rest.popFirst().flatMap(hexadecimal),
                let low = rest.popFirst().flatMap(hexadecimal)
            else { return nil }
            bytes.append(high << 4 | low)
        }
        guard !bytes.contains(0), bytes.count <= 255 else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func hexadecimal(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

extension String {
    fileprivate func removing(suffix: String) -> Substring? {
        hasSuffix(suffix) && utf8.count > suffix.utf8.count ? dropLast(suffix.count) : nil
    }
}
