// SPDX-License-Identifier: Apache-2.0

/// What calls are pending, and whether there may be more.
///
/// A user has quotas. A program that is an owner by itself may have as much pending as it leaves to the user's other
/// programs: the first one half of a quota, a second one half of the rest. So however much one demands, there is room for
/// the next.
struct CallLedger {
    private struct Usage {
        var calls = 0
        var bytes = 0

        var isEmpty: Bool { calls == 0 && bytes == 0 }

        mutating func add(_ load: CallLoad, _ sign: Int) {
            if load.isCounted { calls += sign }
            bytes += sign * load.size
        }
    }

    /// A program that has nothing pending may always have one call of this size, in bytes.
    private static let smallSize = 4_096

    private let quotas: Quotas
    private var users: [UInt32: Usage] = [:]
    private var programs: [Owner: Usage] = [:]

    init(_ quotas: Quotas) { self.quotas = quotas }

    func count(of user: UInt32) -> Int { users[user]?.calls ?? 0 }

    /// Throws why a call is too much.
    func check(_ load: CallLoad, of owner: Owner) throws(Refusal) {
        let all = users[owner.user] ?? Usage()
        guard owner.program != nil else {
            if load.isCounted, all.calls >= quotas.calls {
                throw Ledger.refusal(owner.user, "\(quotas.calls) pending calls")
            }
            // There may always be one, however large it is.
            if all.bytes > 0, load.size > quotas.callBytes - all.bytes {
                throw Ledger.refusal(owner.user, "\(quotas.callBytes >> 20) MB of pending calls")
            }
            return
        }
        let own = programs[owner] ?? Usage()
        if load.isCounted, own.calls >= max(1, quotas.calls - all.calls) {
            throw Refusal(.limitExceeded, "\(owner) has \(own.calls) of its user's \(quotas.calls) calls pending.")
        }
        let isSmall = own.bytes == 0 && load.size <= CallLedger.smallSize
        if all.bytes > 0, !isSmall, load.size > quotas.callBytes - all.bytes - own.bytes {
            let limit = "its user's \(quotas.callBytes >> 20) MB of calls pending"
            throw Refusal(.limitExceeded, "\(owner) has \(own.bytes >> 10) KB of \(limit).")
        }
    }

    mutating func begin(_ load: CallLoad, of owner: Owner) throws(Refusal) {
        try check(load, of: owner)
        change(owner, load, 1)
    }

    mutating func end(_ load: CallLoad, of owner: Owner) { change(owner, load, -1) }

    private mutating func change(_ owner: Owner, _ load: CallLoad, _ sign: Int) {
        users[owner.user, default: Usage()].add(load, sign)
        if users[owner.user]?.isEmpty == true { users[owner.user] = nil }
        guard owner.program != nil else { return }
        programs[owner, default: Usage()].add(load, sign)
        if programs[owner]?.isEmpty == true { programs[owner] = nil }
    }
}
