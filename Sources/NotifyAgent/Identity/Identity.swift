// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore

/// The identity behind a connection: its user, process, application, and sandbox if any.
///
/// The bus reports the user of a connection and the process that made it, and `/proc` what that process is; neither is
/// trusted without the other. States are unknown here.
final class Identity {
    /// A caller.
    struct Caller: Sendable {
        let user: UInt32
        /// The sandbox that the caller is in, for display; nil if it is in none.
        let sandbox: String?
    }

    /// A registering connection.
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

    private typealias Completion = (Result<Client, BusFault>) -> Void

    private static let limit = 4_096

    private let link: BusLink
    /// What the bus has just reported about a connection, while that is being handled.
    private var reported: (name: String, credentials: Credentials)?
    /// A bus never reuses a unique name, so what was found out stays valid.
    private var callers: [String: Caller] = [:]
    /// Those waiting to know a caller, in order: a caller's calls must not overtake each other.
    private var waiting: [String: [(Result<Caller, BusFault>) -> Void]] = [:]
    /// Whether users share the bus by design. Then nobody's root directory is inspected.
    let servesMachine: Bool

    init(_ link: BusLink, servesMachine: Bool) {
        self.link = link
        self.servesMachine = servesMachine
    }

    /// Whether a user may change what belongs to another.
    static func permits(_ user: UInt32, over owner: UInt32) -> Bool {
        user == 0 || user == owner
    }

    // MARK: - Queries

    /// Identifies the caller.
    func findCaller(
        _ name: String,
        then completion: @escaping (Result<Caller, BusFault>) -> Void
    ) {
        if waiting[name] == nil, let known = callers[name] { return completion(.success(known)) }
        waiting[name, default: []].append(completion)
        guard waiting[name]?.count == 1 else { return }
        findClient(name) { [self] answer in
            while let next = nextWaiting(for: name) { next(answer.map(\.caller)) }
        }
    }

    /// The next one that was waiting; nil if there is none.
    private func nextWaiting(
        for name: String
    ) -> ((Result<Caller, BusFault>) -> Void)? {
        guard waiting[name]?.isEmpty == false else {
            waiting[name] = nil
            return nil
        }
        return waiting[name]?.removeFirst()
    }

    /// Finds out whose calls a connection makes.
    ///
    /// - Parameter completion: whatever it asks about the connection need not be asked for again.
    func findOwner(
        _ name: String,
        then completion: @escaping (Result<Owner, BusFault>) -> Void
    ) {
        Identity.ask(name, link) { [self] answer in
            if case .success((_, let credentials?)) = answer { reported = (name, credentials) }
            completion(answer.map(\.owner))
            if let pidfd = reported?.credentials.pidfd, pidfd >= 0 { close(pidfd) }
            reported = nil
        }
    }

    /// The same for a connection of its own, such as the relay's.
    static func findOwner(
        _ name: String,
        _ link: BusLink,
        then completion: @escaping (Result<Owner, BusFault>) -> Void
    ) {
        ask(name, link) { answer in
            if case .success((_, let credentials?)) = answer, credentials.pidfd >= 0 { close(credentials.pidfd) }
            completion(answer.map(\.owner))
        }
    }

    private static func ask(
        _ name: String,
        _ link: BusLink,
        then completion: @escaping (Result<(owner: Owner, Credentials?), BusFault>) -> Void
    ) {
        link.callBus("GetConnectionCredentials", [.string(name)]) { answer in
            if let credentials = credentials(in: answer) {
                return completion(.success((owner(credentials), credentials)))
            }
            // A bus may not know the process of a connection, but knows its user.
            link.findUser(of: name) { user in
                completion(user.map { (Owner(user: $0, program: .unknown, agentUser: geteuid()), nil) })
            }
        }
    }

    /// Only programs of the agent's own user are told apart. The number of a process may have been reused: then two
    /// programs share what is meant for one.
    private static func owner(_ credentials: Credentials) -> Owner {
        guard credentials.user == geteuid() else { return Owner(user: credentials.user) }
        let cgroups = SystemFile.text(of: "/proc/\(credentials.pid)/cgroup") ?? ""
        let sandbox = AppIdentity.sandboxedApplication(label: credentials.label, cgroups: cgroups)
        return Owner(user: credentials.user, program: sandbox.map { .sandbox($0) } ?? .process(credentials.pid))
    }

    /// Identifies a registering connection, and opens its process.
    func findClient(
        _ name: String,
        then completion: @escaping (Result<Client, BusFault>) -> Void
    ) {
        if let reported, reported.name == name {
            self.reported = nil
            return check(reported.credentials, of: name, then: completion)
        }
        link.callBus("GetConnectionCredentials", [.string(name)]) { [self] answer in
            guard let credentials = Identity.credentials(in: answer) else {
                return completion(.failure(BusFault(Refusal.unidentified(name))))
            }
            check(credentials, of: name, then: completion)
        }
    }

    private func check(
        _ credentials: Credentials,
        of name: String,
        then completion: @escaping (Result<Client, BusFault>) -> Void
    ) {
        let (user, pid) = (credentials.user, credentials.pid)
        switch ProcessHandle.open(pid, pidfd: credentials.pidfd, user: user) {
        case .failure(let doubt):
            completion(.failure(.accessDenied(doubt.text(pid, user: user))))
        case .success(let process):
            let client = look(at: process, label: credentials.label)
            if credentials.pidfd >= 0 { return note(client, of: name, completion) }
            confirm(process, of: name) { [self] isSo in
                guard isSo else { return completion(.failure(BusFault(Refusal.unidentified(name)))) }
                note(client, of: name, completion)
            }
        }
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

    /// Asks whether a connection still belongs to a process number, now that the process is open: if so, the number had
    /// not been reused before that.
    private func confirm(
        _ process: ProcessHandle,
        of name: String,
        then completion: @escaping (Bool) -> Void
    ) {
        link.callBus("GetConnectionUnixProcessID", [.string(name)]) { answer in
            let pid: UInt32? = if case .success(let values) = answer { values.first?.uint32 } else { nil }
            completion(pid == UInt32(process.pid))
        }
    }

    private func note(_ client: Client, of name: String, _ completion: Completion) {
        if callers.count >= Identity.limit { callers.removeAll() }
        callers[name] = client.caller
        completion(.success(client))
    }

    // MARK: - Sandboxes

    private func look(at process: ProcessHandle, label: String) -> Client {
        let cgroups = process.read { $0.cgroups } ?? []
        return Client(
            caller: Caller(user: process.user, sandbox: sandbox(of: process, cgroups, label: label)),
            process: process,
            application: AppIdentity.application(ofCgroups: cgroups),
            session: AppIdentity.session(ofCgroups: cgroups)
        )
    }

    /// The signs of a sandbox. Each is trusted: nobody gains anything by being taken for sandboxed.
    private func sandbox(of process: ProcessHandle, _ cgroups: [String], label: String) -> String? {
        if let snap = AppIdentity.snap(inLabel: label) { return "the snap \(snap)" }
        if cgroups.contains(where: AppIdentity.isFlatpak) { return "a Flatpak" }
        // Other users' root directories may contain anything, and are not inspected.
        guard !servesMachine, process.user == geteuid() else { return nil }
        return process.read { $0.hasFlatpakMark } == true ? "a Flatpak" : nil
    }
}

extension BusFault {
    /// What the bus says when the recipient of a call has gone.
    static var replaced: BusFault {
        BusFault(name: "org.freedesktop.DBus.Error.NoReply", message: "Another agent has taken over.")
    }

    static func inSandbox(_ sandbox: String) -> BusFault {
        .accessDenied("A program in \(sandbox) can only report its own state, not see or change that of others.")
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
