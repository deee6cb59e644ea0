// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore

/// The identity behind a connection: its user, process, application, and sandbox if any.
///
/// The bus reports the user of a connection and the process that made it, and `/proc` what that process is; neither is
/// trusted without the other. States are unknown here.
package final class Identity {
    /// A connection whose process is known.
    struct Client: Sendable {
        let caller: Caller
        let process: ProcessHandle
        let application: String
        /// The login session that the process is in; nil if it is in none.
        let session: String?
    }

    /// What the bus reports about a connection.
    struct Credentials {
        var user: UInt32
        var pid: pid_t
        var label: String
        /// The bus's own descriptor of the process, or -1.
        var pidfd: Int32
    }

    private static let limit = 4_096

    private let link: BusLink
    /// The connection that has just been identified, while its calls are being handled.
    private var present: (name: String, client: Client)?
    /// A bus never reuses a unique name, so what was found out stays valid.
    private var callers: [String: Caller] = [:]
    /// Whether users share the bus by design. Then no root directory is inspected.
    let servesMachine: Bool

    init(_ link: BusLink, servesMachine: Bool) {
        self.link = link
        self.servesMachine = servesMachine
    }

    // MARK: - Queries

    /// Finds out who makes the calls of a connection; nil if the bus does not say.
    ///
    /// - Parameter completion: may use `findClient` of the connection without asking again.
    func identify(_ name: String, then completion: @escaping (Caller?) -> Void) {
        if let known = callers[name] { return completion(known) }
        link.callBus("GetConnectionCredentials", [.string(name)]) { [self] answer in
            guard let credentials = Identity.credentials(in: answer) else {
                // A bus may not know the process of a connection, but knows its user.
                return link.findUser(of: name) { user in
                    let owner = (try? user.get()).map { Owner(user: $0, program: .unknown, agentUser: geteuid()) }
                    completion(owner.map { Caller($0, confinement: .unidentified(name), isUncertain: true) })
                }
            }
            check(credentials, of: name) { [self] client in
                switch client {
                case .success(let client):
                    present = (name, client)
                    completion(client.caller)
                    present = nil
                case .failure(let refusal):
                    let program = Owner.Program.process(credentials.pid)
                    let owner = Owner(user: credentials.user, program: program, agentUser: geteuid())
                    completion(Caller(owner, confinement: refusal, isUncertain: true))
                }
            }
        }
    }

    /// Finds the process of a registering connection.
    func findClient(_ name: String, then completion: @escaping (Result<Client, Refusal>) -> Void) {
        if let present, present.name == name { return completion(.success(present.client)) }
        link.callBus("GetConnectionCredentials", [.string(name)]) { [self] answer in
            guard let credentials = Identity.credentials(in: answer) else {
                return completion(.failure(.unidentified(name)))
            }
            check(credentials, of: name, then: completion)
        }
    }

    /// Opens the process of a connection.
    private func check(
        _ credentials: Credentials,
        of name: String,
        then completion: @escaping (Result<Client, Refusal>) -> Void
    ) {
        let (user, pid) = (credentials.user, credentials.pid)
        // Other users' root directories may contain anything, and are not inspected.
        let looksInside = !servesMachine && user == geteuid()
        switch ProcessHandle.open(pid, pidfd: credentials.pidfd, user: user, looksInside: looksInside) {
        case .failure(.gone):
            // Or the bus numbers processes in another namespace, and so this one, too.
            link.callBus("GetConnectionUnixProcessID", [.string(link.uniqueName)]) { answer in
                let own: UInt32? = if case .success(let values) = answer { values.first?.uint32 } else { nil }
                let doubt: ProcessHandle.Doubt = own == nil || own == UInt32(getpid()) ? .gone : .elsewhere
                completion(.failure(Refusal(.accessDenied, doubt.text(pid, user: user))))
            }
        case .failure(let doubt): completion(.failure(Refusal(.accessDenied, doubt.text(pid, user: user))))
        case .success(let (process, look)):
            let client = Client(process, look, label: credentials.label)
            if credentials.pidfd >= 0 { return note(client, of: name, completion) }
            // Does the connection still belong to that number, now that the process is open? If so, the number had not
            // been reused before.
            link.callBus("GetConnectionUnixProcessID", [.string(name)]) { [self] answer in
                let now: UInt32? = if case .success(let values) = answer { values.first?.uint32 } else { nil }
                guard now == UInt32(pid) else { return completion(.failure(.unidentified(name))) }
                note(client, of: name, completion)
            }
        }
    }

    private func note(_ client: Client, of name: String, _ completion: (Result<Client, Refusal>) -> Void) {
        if callers.count >= Identity.limit { callers.removeAll() }
        callers[name] = client.caller
        completion(.success(client))
    }

    /// - Returns: nil if the bus does not report them, as newer ones don't once the process has ended.
    static func credentials(in answer: BusAnswer) -> Credentials? {
        guard case .success(let values) = answer else { return nil }
        guard let facts = values.first?.dictionary, let user = facts["UnixUserID"]?.uint32,
            let pid = facts["ProcessID"]?.uint32.flatMap({ pid_t(exactly: $0) }), pid > 0
        else {
            values.closeDescriptors()
            return nil
        }
        let label = facts["LinuxSecurityLabel"]?.elements ?? []
        let bytes = label.compactMap { value -> UInt8? in
            if case .number(_, let byte) = value { UInt8(truncatingIfNeeded: byte) } else { nil }
        }
        var others = facts
        let pidfd = others.removeValue(forKey: "ProcessFD")?.descriptor ?? -1
        Array(others.values).closeDescriptors()
        return Credentials(
            user: user,
            pid: pid,
            label: String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self),
            pidfd: pidfd
        )
    }
}

extension Identity.Client {
    /// - Parameter label: its AppArmor label.
    fileprivate init(_ process: ProcessHandle, _ look: ProcessHandle.Look, label: String) {
        let application = AppIdentity.application(ofCgroups: look.cgroups)
        // Only programs of the agent's own user are told apart.
        let sandboxed = AppIdentity.sandboxedApplication(label: label, cgroups: look.cgroups)
        let program = sandboxed.map { Owner.Program.sandbox($0) } ?? .process(process.pid)
        // The signs of a sandbox. Each is trusted: no program gains anything by being taken for sandboxed.
        let isFlatpak = look.hasFlatpakMark || look.cgroups.contains(where: AppIdentity.isFlatpak)
        let sandbox = AppIdentity.snap(inLabel: label).map { "the snap \($0)" } ?? (isFlatpak ? "a Flatpak" : nil)
        self.init(
            caller: Caller(
                Owner(user: process.user, program: program, agentUser: geteuid()),
                confinement: sandbox.map { .inSandbox($0) }
            ),
            process: process,
            application: application,
            session: AppIdentity.session(ofCgroups: look.cgroups)
        )
    }
}

extension BusFault {
    /// What the bus says when the recipient of a call has gone.
    static var replaced: BusFault {
        BusFault(name: "org.freedesktop.DBus.Error.NoReply", message: "This agent ends, or another has taken over.")
    }
}

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

    /// The innermost or outermost unit in the path of a cgroup, and whether a user's service manager runs it; nil if there is
    /// none.
    package static func unit(ofCgroup path: String, isOutermost: Bool = false) -> (name: String, isOfUser: Bool)? {
        let parts = path.split(separator: "/")
        let isUnit = { (part: Substring) in part.hasSuffix(".service") || part.hasSuffix(".scope") }
        guard let place = isOutermost ? parts.firstIndex(where: isUnit) : parts.lastIndex(where: isUnit) else {
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
    ///   - paths: of its cgroups.
    package static func sandboxedApplication(label: String, cgroups paths: [String]) -> String? {
        snap(inLabel: label) ?? paths.first(where: isFlatpak).flatMap { application(ofCgroup: $0) }
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
            guard rest.popFirst() == UInt8(ascii: "x"), let high = rest.popFirst().flatMap(\.hexadecimalValue),
                let low = rest.popFirst().flatMap(\.hexadecimalValue)
            else { return nil }
            bytes.append(high << 4 | low)
        }
        guard !bytes.contains(0), bytes.count <= 255 else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }
}

extension String {
    fileprivate func removing(suffix: String) -> Substring? {
        hasSuffix(suffix) && utf8.count > suffix.utf8.count ? dropLast(suffix.count) : nil
    }
}

extension FocusedProcess {
    /// Identifies the process.
    ///
    /// - Parameter window: what the desktop calls the application of the window.
    init(pid: Int32, window: String = "", isFullscreen: Bool = false) {
        var (startTime, application, user) = (UInt64(0), "", UInt32?.none)
        var isOfDesktop = false
        if let folder = ProcessFolder(of: pid) {
            startTime = folder.startTime ?? 0
            let cgroups = folder.cgroups
            application = AppIdentity.application(ofCgroups: cgroups)
            user = folder.users?.effective
            isOfDesktop = cgroups.contains { $0.split(separator: "/").contains("session.slice") }
        }
        self.init(
            pid: pid,
            startTime: startTime,
            ancestors: ProcessTree.ancestors(of: pid),
            application: application,
            user: user,
            window: window,
            isFullscreen: isFullscreen,
            isOfDesktop: isOfDesktop
        )
    }
}
