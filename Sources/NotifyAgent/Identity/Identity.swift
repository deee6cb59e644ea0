// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore

/// Who is behind a connection: which user, which process, which application, in a sandbox or not.
///
/// The bus says whose a connection is and which process made it, `/proc` says what that process is, and neither is
/// believed without the other. It knows nothing of states.
///
/// `@unchecked Sendable`, like all that belongs to the agent: only the thread that reads touches it.
final class Identity: @unchecked Sendable {
    /// Somebody who calls.
    struct Caller: Sendable {
        let user: UInt32
        /// The sandbox that the caller is in, for people; nil if it is in none.
        let sandbox: String?
    }

    /// Somebody who registers.
    struct Client: Sendable {
        let caller: Caller
        let process: ProcessHandle
        let application: String
        /// The login session that the process is in; nil if it is in none.
        let session: String?
    }

    /// What the bus says of a connection.
    private struct Credentials {
        var user: UInt32
        var pid: pid_t
        var label: String
        /// The bus's own descriptor of the process, or -1.
        var pidfd: Int32
    }

    private typealias Completion = @Sendable (Result<Client, BusFault>, borrowing BusLink) -> Void

    private var callers = AnswerCache<Caller>()
    private var users = AnswerCache<UInt32>()
    /// Whether users share the bus by design. Then nobody's root directory is looked into.
    private let servesMachine: Bool

    init(bus: NotifyCenter.Bus) {
        servesMachine = bus == .system
    }

    /// Whether a user may change what belongs to another.
    static func permits(_ user: UInt32, over owner: UInt32) -> Bool {
        user == 0 || user == owner
    }

    // MARK: - Asking

    /// Finds out who calls.
    func findCaller(
        _ name: String,
        _ link: borrowing BusLink,
        then completion: @escaping @Sendable (Result<Caller, BusFault>, borrowing BusLink) -> Void
    ) {
        if let known = callers[name] { return completion(.success(known), link) }
        guard callers.wait(for: name, completion) else { return }
        findClient(name, link) { [self] answer, link in
            while let next = callers.nextWaiting(for: name) { next(answer.map(\.caller), link) }
        }
    }

    /// Finds out which user a connection belongs to, whatever has become of the process that made it; nil if the
    /// connection is gone.
    func findUser(
        of name: String,
        _ link: borrowing BusLink,
        then completion: @escaping @Sendable (UInt32?, borrowing BusLink) -> Void
    ) {
        if let known = users[name] { return completion(known, link) }
        guard users.wait(for: name, { answer, link in completion(try? answer.get(), link) }) else { return }
        link.callBus("GetConnectionUnixUser", [.string(name)]) { [self] answer, link in
            let user = answer.flatMap { values in
                values.first?.uint32.map { .success($0) } ?? .failure(.failed("The bus does not say whose \(name) is."))
            }
            if case .success(let user) = user { users.note(user, of: name) }
            while let next = users.nextWaiting(for: name) { next(user, link) }
        }
    }

    /// Finds out who registers, and takes hold of the process.
    func findClient(
        _ name: String,
        _ link: borrowing BusLink,
        then completion: @escaping @Sendable (Result<Client, BusFault>, borrowing BusLink) -> Void
    ) {
        link.callBus("GetConnectionCredentials", [.string(name)]) { [self] answer, link in
            guard let credentials = Identity.credentials(in: answer) else {
                return completion(.failure(.failed("The bus does not say whose connection \(name) is.")), link)
            }
            let (user, pid) = (credentials.user, credentials.pid)
            switch ProcessHandle.open(pid, pidfd: credentials.pidfd, user: user) {
            case .failure(let doubt):
                completion(.failure(.accessDenied(doubt.text(pid, user: user))), link)
            case .success(let process):
                let client = look(at: process, label: credentials.label)
                if credentials.pidfd >= 0 { return note(client, of: name, link, completion) }
                confirm(process, of: name, link) { [self] isSo, link in
                    guard isSo else { return completion(.failure(.failed("\(name) has left the bus.")), link) }
                    note(client, of: name, link, completion)
                }
            }
        }
    }

    private static func credentials(in answer: BusAnswer) -> Credentials? {
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

    /// Asks whether a connection is still that of a process number, now that the process is in hand: if so the number has
    /// not gone to another process before that.
    private func confirm(
        _ process: ProcessHandle,
        of name: String,
        _ link: borrowing BusLink,
        then completion: @escaping @Sendable (Bool, borrowing BusLink) -> Void
    ) {
        link.callBus("GetConnectionUnixProcessID", [.string(name)]) { answer, link in
            let pid: UInt32? = if case .success(let values) = answer { values.first?.uint32 } else { nil }
            completion(pid == UInt32(process.pid), link)
        }
    }

    private func note(_ client: Client, of name: String, _ link: borrowing BusLink, _ completion: Completion) {
        callers.note(client.caller, of: name)
        users.note(client.caller.user, of: name)
        completion(.success(client), link)
    }

    // MARK: - Looking

    private func look(at process: ProcessHandle, label: String) -> Client {
        let cgroups = process.read { $0.cgroups } ?? []
        return Client(
            caller: Caller(user: process.user, sandbox: sandbox(of: process, cgroups, label: label)),
            process: process,
            application: AppIdentity.application(ofCgroups: cgroups),
            session: AppIdentity.session(ofCgroups: cgroups)
        )
    }

    /// The signs of a sandbox. Each is believed: to be taken for sandboxed gains nobody anything.
    private func sandbox(of process: ProcessHandle, _ cgroups: [String], label: String) -> String? {
        if let snap = AppIdentity.snap(inLabel: label) { return "the snap \(snap)" }
        if cgroups.contains(where: AppIdentity.isFlatpak) { return "a Flatpak" }
        // Others' root directories may be anything, and are none of this agent's business.
        guard !servesMachine, process.user == geteuid() else { return nil }
        return process.read { $0.hasFlatpakMark } == true ? "a Flatpak" : nil
    }
}

/// What was found out of unique names. A bus never gives one twice, so an answer is right for ever.
private struct AnswerCache<Answer: Sendable> {
    typealias Completion = @Sendable (Result<Answer, BusFault>, borrowing BusLink) -> Void

    private static var limit: Int { 4_096 }
    private var known: [String: Answer] = [:]
    /// Who waits for an answer, in order: a caller's calls must not overtake each other.
    private var waiting: [String: [Completion]] = [:]

    /// What is known of a name for which nobody waits.
    subscript(name: String) -> Answer? { waiting[name] == nil ? known[name] : nil }

    /// - Returns: whether somebody must be asked.
    mutating func wait(for name: String, _ completion: @escaping Completion) -> Bool {
        waiting[name, default: []].append(completion)
        return waiting[name]?.count == 1
    }

    /// The next one who waited; nil when there is nobody any more.
    mutating func nextWaiting(for name: String) -> Completion? {
        guard waiting[name]?.isEmpty == false else {
            waiting[name] = nil
            return nil
        }
        return waiting[name]?.removeFirst()
    }

    mutating func note(_ answer: Answer, of name: String) {
        if known.count >= Self.limit { known.removeAll() }
        known[name] = answer
    }
}

extension BusFault {
    static func inSandbox(_ sandbox: String) -> BusFault {
        .accessDenied("A program in \(sandbox) can't change the state of others, only report its own.")
    }
}
