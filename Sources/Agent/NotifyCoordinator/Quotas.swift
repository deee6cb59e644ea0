// SPDX-License-Identifier: Apache-2.0

import NotifyNames

/// How much of the agent's resources one user may use. Calls beyond that are refused immediately.
package struct Quotas: Sendable {
    package var connections = 4_096
    /// In all connections together.
    package var names = 65_536
    package var prefixes = 4_096
    /// The size of names and prefixes, each its length plus 64 bytes.
    package var bytes = 12 << 20
    /// What programs in a sandbox may observe through the relay, in all connections of an application together: enough for an
    /// application, which knows the names that it is interested in, and little of what its user may observe. Each prefix costs
    /// the bus a rule.
    package var sandboxNames = 4_096
    package var sandboxPrefixes = 256
    /// Pending calls: those that wait for their turn, and those that have not been answered yet. See `CallLedger`.
    package var calls = 1_024
    /// The size of the pending calls. There may always be one, however large it is.
    package var callBytes = 16 << 20
    /// Names pending for suspended connections.
    package var pendingNames = 131_072
    package var pendingBytes = 12 << 20

    package init() {}
}

/// How much memory something uses, and whether some can be given back.
struct MemoryUse: Hashable, Sendable {
    var bytes = 0 { didSet { peak = max(peak, bytes) } }
    /// The maximum since memory was last given back.
    private var peak = 0

    /// Whether usage has dropped enough to make releasing memory worthwhile.
    var hasShrunk: Bool { peak > 1 << 17 && bytes < peak / 2 }

    mutating func isGivenBack() { peak = bytes }

    // The peak changes nothing but when memory is given back.
    static func == (left: MemoryUse, right: MemoryUse) -> Bool { left.bytes == right.bytes }
    func hash(into hasher: inout Hasher) { hasher.combine(bytes) }
}

/// What the connections of each user use.
struct Ledger {
    struct Account: Hashable {
        var connections = 0
        var names = 0
        var prefixes = 0
        var bytes = 0
        var pendingNames = 0
        var pendingBytes = 0

        var isEmpty: Bool {
            connections == 0 && names == 0 && prefixes == 0 && bytes == 0 && pendingNames == 0
        }
    }

    /// Whose account what a connection observes counts towards.
    struct Holder: Hashable {
        let user: UInt32
        /// The program in a sandbox that observes through the relay, as a subject of a sentence; nil for others.
        var sandbox: String?
    }

    let quotas: Quotas
    private(set) var accounts: [UInt32: Account] = [:]
    /// What those in sandboxes observe, which counts towards their users' accounts as well.
    private(set) var sandboxes: [Holder: Account] = [:]
    /// The usage of all users.
    private var memory = MemoryUse()

    init(_ quotas: Quotas) { self.quotas = quotas }

    subscript(user: UInt32) -> Account { accounts[user] ?? Account() }

    /// What a name or prefix counts as.
    static func cost(_ text: String) -> Int { text.utf8.count + 64 }

    static func cost(_ subjects: Subjects) -> Int {
        subjects.names.reduce(0) { $0 + cost($1.string) } + subjects.prefixes.reduce(0) { $0 + cost($1.string) }
    }

    // MARK: - Connections and their subjects

    func checkConnection(of user: UInt32) throws(Refusal) {
        guard self[user].connections < quotas.connections else {
            throw Ledger.refusal(user, "\(quotas.connections) observing connections")
        }
    }

    /// Records that a connection observes more. Nothing is recorded if it is too much.
    mutating func observe(_ subjects: Subjects, by holder: Holder) throws(Refusal) {
        let user = holder.user
        let sandbox = try sandboxAccount(of: holder, observing: subjects)
        var account = self[user]
        account.names += subjects.names.count
        account.prefixes += subjects.prefixes.count
        account.bytes += Ledger.cost(subjects)
        guard account.names <= quotas.names else {
            throw Ledger.refusal(user, "\(quotas.names) names observed by all its connections together")
        }
        guard account.prefixes <= quotas.prefixes else {
            throw Ledger.refusal(user, "\(quotas.prefixes) prefixes observed by all its connections together")
        }
        guard account.bytes <= quotas.bytes else {
            throw Ledger.refusal(user, "\(quotas.bytes >> 20) MB of names and prefixes")
        }
        change(user) { $0 = account }
        if let sandbox { sandboxes[holder] = sandbox }
    }

    /// The account of a sandbox once it observes more; nil if the holder is in none.
    private func sandboxAccount(of holder: Holder, observing subjects: Subjects) throws(Refusal) -> Account? {
        guard let sandbox = holder.sandbox else { return nil }
        var account = sandboxes[holder] ?? Account()
        account.names += subjects.names.count
        account.prefixes += subjects.prefixes.count
        guard account.names <= quotas.sandboxNames, account.prefixes <= quotas.sandboxPrefixes else {
            throw Refusal(
                .limitExceeded,
                "\(sandbox) is in a sandbox, and can observe at most \(quotas.sandboxNames) names and "
                    + "\(quotas.sandboxPrefixes) prefixes in all its connections together."
            )
        }
        return account
    }

    mutating func observeLess(_ subjects: Subjects, by holder: Holder) {
        change(holder.user) { account in
            account.names -= subjects.names.count
            account.prefixes -= subjects.prefixes.count
            account.bytes -= Ledger.cost(subjects)
        }
        guard holder.sandbox != nil, var account = sandboxes[holder] else { return }
        account.names -= subjects.names.count
        account.prefixes -= subjects.prefixes.count
        sandboxes[holder] = account.isEmpty ? nil : account
    }

    mutating func connectionCame(of user: UInt32) { change(user) { $0.connections += 1 } }
    mutating func connectionWent(of user: UInt32) { change(user) { $0.connections -= 1 } }

    // MARK: - Pending names

    /// - Returns: whether there was room for one more, which is then recorded.
    mutating func keepPending(_ name: NotifyName, of user: UInt32) -> Bool {
        let cost = Ledger.cost(name.string)
        let account = self[user]
        guard account.pendingNames < quotas.pendingNames, account.pendingBytes + cost <= quotas.pendingBytes else {
            return false
        }
        change(user) { account in
            account.pendingNames += 1
            account.pendingBytes += cost
        }
        return true
    }

    mutating func forgetPending(_ names: some Collection<NotifyName>, of user: UInt32) {
        guard !names.isEmpty else { return }
        change(user) { account in
            account.pendingNames -= names.count
            account.pendingBytes -= names.reduce(0) { $0 + Ledger.cost($1.string) }
        }
    }

    private mutating func change(_ user: UInt32, _ change: (inout Account) -> Void) {
        let before = self[user]
        var account = before
        change(&account)
        accounts[user] = account.isEmpty ? nil : account
        memory.bytes += account.bytes + account.pendingBytes - before.bytes - before.pendingBytes
    }

    var hasShrunk: Bool { memory.hasShrunk }

    mutating func memoryIsGivenBack() { memory.isGivenBack() }

    static func refusal(_ user: UInt32, _ limit: String) -> Refusal {
        Refusal(.limitExceeded, "User \(user) has reached the limit of \(limit).")
    }
}
