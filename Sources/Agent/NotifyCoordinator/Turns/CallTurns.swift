// SPDX-License-Identifier: Apache-2.0

import NotifyNames

/// Calls in the order in which they are handled: owners take turns, and so do the connections of an owner, while the
/// calls of one connection never overtake each other. So no program's calls wait for all of another's.
///
/// It knows no bus and no clock. The owner of a connection to the bus drives it as follows, from one thread:
///
/// 1. A call has arrived: ask `refusal(from:_:wantsReply:)` before its arguments are read, since a refusal must be cheap, and then
///    pass the call to `take`. `mayBegin` says whether there is time left in this pass: a few milliseconds for all calls
///    together, after which the bus must be read again.
/// 2. The verdict `begin` means that it is the call's turn: handle it now. `waits` means that `next` returns it later.
///    `unknown` means that the bus must be asked who the sender is; pass the reply to `identify`, which passes a
///    verdict on each call that was kept meanwhile. This is done once for each sender.
/// 3. As long as there is time in a pass, handle what `next` returns. `isEmpty` says whether another pass is needed: if
///    it is true, there is no reason to wake up.
/// 4. When a call that has begun is answered, or can't be answered any more, pass its charge to `end`: until then it
///    counts towards the quota of its user, as do those that wait.
///
/// Pass anything that arrives from a connection besides calls, and must not overtake them, to `follow`.
///
/// Large calls are in a line of their own, since one takes as long as thousands of others: `nextLarge` returns one of them.
/// Ask for it only when everything has been read that the bus had for this connection, and `isEmpty` is true or has been
/// false for a while. An owner pays for each with time: until `largeTime` none may begin.
package struct CallTurns<Call, Follower> {
    package enum Verdict: Equatable {
        case begin(CallCharge)
        case waits
        /// It waits until its sender is known.
        case unknown
        case refused(Refusal)
    }

    /// A call whose turn it is.
    package enum Turn {
        case call(Call, CallCharge)
        /// Something that has followed a call.
        case follower(Follower)
    }

    private enum Entry {
        case call(Call, CallLoad)
        case follower(Follower)
    }

    /// A connection that the bus has identified.
    private struct Sender {
        let caller: Caller
        /// Those that wait.
        var calls = Fifo<Entry>()
        /// How many wait or have begun.
        var pending = 0

        var isIdle: Bool { calls.isEmpty && pending == 0 }
    }

    /// How many connections are remembered besides those with pending calls; beyond that the bus is asked again.
    package static var memory: Int { 4_096 }

    /// How many calls of one unknown connection may wait, how many of all together, and how large these may be. The last
    /// limit does not apply to small ones, which the others limit well enough: no connection can keep them out.
    package static var callsOfStranger: Int { 8 }
    package static var callsOfStrangers: Int { 4_096 }
    private static var bytesOfStrangers: Int { 16 << 20 }
    private static var smallSize: Int { 4_096 }

    private(set) var ledger: CallLedger
    private var senders: [String: Sender] = [:]
    /// How many of them there may be before idle ones are forgotten.
    private var room = CallTurns.memory
    private var turns = Turns<Owner, String>()
    /// The connections whose next call is large.
    private var large = Turns<Owner, String>()
    /// Until when each owner may not have another large call begin, in nanoseconds of the monotonic clock.
    private var payments: [Owner: Int64] = [:]
    private var strangers: [String: Fifo<(call: Call, load: CallLoad)>] = [:]
    private var strangeCalls = 0
    private var strangeBytes = 0
    /// Nil if the bus does not say what it keeps for a connection: then nothing is known about what is unread.
    package var answers: UnreadAnswers? = UnreadAnswers()

    package init(_ quotas: Quotas) {
        ledger = CallLedger(quotas)
    }

    /// Whether no call is waiting for its turn, but perhaps large ones.
    package var isEmpty: Bool { turns.isEmpty }

    /// How many bytes of large calls, as they count, an owner may have handled a second: names enough for a full registration
    /// in three seconds, which takes a tenth of that.
    static var rate: Int64 { 1 << 20 }

    /// When the next large call may begin, in nanoseconds of the monotonic clock; nil if none waits.
    package var largeTime: Int64? { large.line.map { payments[$0] ?? 0 }.min() }

    /// The owner of a connection, if the bus has reported it. It is known as long as a call of the connection is pending.
    package func owner(of sender: String) -> Owner? { senders[sender]?.caller.owner }

    // MARK: - Calls that arrive

    /// Why a call is refused, whatever it asks for; nil if it is not.
    package mutating func refusal(from sender: String, _ load: CallLoad, wantsReply: Bool) -> Refusal? {
        do throws(Refusal) {
            if let owner = owner(of: sender) {
                try ledger.check(load, of: owner)
            } else {
                try checkStranger(sender, load.size)
            }
            return wantsReply ? refusal(ofAnswersTo: sender) : nil
        } catch {
            return error
        }
    }

    /// Why nothing is computed for a connection, which does not read what it is sent.
    package mutating func refusal(ofAnswersTo sender: String) -> Refusal? {
        let holder = accountHolder(sender)
        return answers?.refusal(sender, of: holder)
    }

    /// Whether a connection is not even sent refusals.
    package func ignores(_ sender: String) -> Bool {
        answers?.isIgnored(sender, of: accountHolder(sender)) == true
    }

    /// Something has been sent in reply to a call.
    package mutating func hasReplied(to sender: String, bytes: Int) {
        let holder = accountHolder(sender)
        answers?.hasAnswered(sender, of: holder, bytes: bytes)
    }

    /// Whose answers these are.
    private func accountHolder(_ sender: String) -> Owner { owner(of: sender) ?? UnreadAnswers.strangers }

    /// A call has arrived.
    ///
    /// - Parameter mayBegin: whether there is time to handle it now, unless it is another's turn.
    package mutating func take(_ call: Call, _ load: CallLoad, from sender: String, mayBegin: Bool) -> Verdict {
        do throws(Refusal) {
            guard let caller = senders[sender]?.caller else { return try park(call, load, from: sender) }
            try ledger.begin(load, of: caller.owner)
            senders[sender]?.pending += 1
            let isFirst = senders[sender]?.calls.isEmpty == true
            if mayBegin, isFirst, turns.isEmpty, !load.isLarge {
                return .begin(CallCharge(sender: sender, caller: caller, load: load))
            }
            senders[sender]?.calls.append(.call(call, load))
            if isFirst { line(up: sender, of: caller.owner) }
            return .waits
        } catch {
            return .refused(error)
        }
    }

    /// Something has arrived that must not overtake the calls of a connection. It counts towards no quota.
    ///
    /// - Returns: false if nothing is waiting, in which case it is to be handled now.
    package mutating func follow(_ follower: Follower, from sender: String) -> Bool {
        guard senders[sender]?.calls.isEmpty == false else { return false }
        senders[sender]?.calls.append(.follower(follower))
        return true
    }

    // MARK: - Unknown senders

    private func checkStranger(_ sender: String, _ size: Int) throws(Refusal) {
        guard strangers[sender]?.count ?? 0 < CallTurns.callsOfStranger else {
            throw Refusal(.limitExceeded, "Too many calls from a connection that the bus has yet to identify.")
        }
        let isTooMuch = size > CallTurns.smallSize && size > CallTurns.bytesOfStrangers - strangeBytes
        guard strangeCalls < CallTurns.callsOfStrangers, !isTooMuch else {
            throw Refusal(.limitExceeded, "Too many new connections are calling right now; try again.")
        }
    }

    private mutating func park(_ call: Call, _ load: CallLoad, from sender: String) throws(Refusal) -> Verdict {
        try checkStranger(sender, load.size)
        let isFirst = strangers[sender] == nil
        strangers[sender, default: Fifo()].append((call, load))
        strangeCalls += 1
        strangeBytes += load.size
        return isFirst ? .unknown : .waits
    }

    /// The bus has reported who a sender is.
    ///
    /// - Parameters:
    ///   - caller: nil if the bus does not say, for instance because the connection has gone. Then its calls are refused.
    ///   - mayBegin: as for `take`.
    /// - Returns: a verdict on each call that was kept.
    package mutating func identify(
        _ sender: String,
        as caller: Caller?,
        mayBegin: Bool
    ) -> [(call: Call, verdict: Verdict)] {
        if let caller, senders[sender] == nil {
            if senders.count >= room {
                senders = senders.filter { !$0.value.isIdle }
                room = max(CallTurns.memory, 2 * senders.count)
            }
            senders[sender] = Sender(caller: caller)
        }
        guard var calls = strangers.removeValue(forKey: sender) else { return [] }
        var verdicts: [(Call, Verdict)] = []
        while let (call, load) = calls.popFirst() {
            strangeCalls -= 1
            strangeBytes -= load.size
            let verdict =
                caller == nil
                ? Verdict.refused(.unidentified(sender)) : take(call, load, from: sender, mayBegin: mayBegin)
            verdicts.append((call, verdict))
        }
        return verdicts
    }

    // MARK: - Turns

    /// Takes the next call.
    package mutating func next() -> Turn? { turns.next().flatMap { take(of: $0) } }

    /// Takes the next large call, if its owner has paid for the last one.
    package mutating func nextLarge(now: Int64) -> Turn? {
        guard let name = large.next(where: { payments[$0] ?? 0 <= now }) else { return nil }
        let turn = take(of: name)
        if payments.count >= CallTurns.manyPayments { payments = payments.filter { $0.value > now } }
        if case .call(_, let charge)? = turn {
            payments[charge.caller.owner] = now + Int64(charge.load.size) * 1_000_000_000 / CallTurns.rate
        }
        return turn
    }

    private static var manyPayments: Int { 256 }

    /// A connection has calls waiting, and is in no line.
    private mutating func line(up name: String, of owner: Owner) {
        if case .call(_, let load)? = senders[name]?.calls.first, load.isLarge {
            large.append(name, of: owner)
        } else {
            turns.append(name, of: owner)
        }
    }

    private mutating func take(of name: String) -> Turn? {
        guard let entry = senders[name]?.calls.popFirst(), let caller = senders[name]?.caller else {
            assertionFailure("It is the turn of a connection for which nothing waits.")
            return nil
        }
        if senders[name]?.calls.isEmpty == false { line(up: name, of: caller.owner) }
        switch entry {
        case .call(let call, let load): return .call(call, CallCharge(sender: name, caller: caller, load: load))
        case .follower(let follower): return .follower(follower)
        }
    }

    /// A call that had begun is over.
    package mutating func end(_ charge: CallCharge) {
        ledger.end(charge.load, of: charge.caller.owner)
        senders[charge.sender]?.pending -= 1
        // A sender that could not be identified may be the next time.
        if charge.caller.isUncertain, senders[charge.sender]?.isIdle == true { senders[charge.sender] = nil }
    }
}

/// The sender of a call.
package struct Caller: Hashable, Sendable {
    package let owner: Owner
    /// Why it may neither see nor change what belongs to others: it is in a sandbox, or its process is unknown. Nil if it
    /// may.
    package let confinement: Refusal?
    /// Whether its process is unknown, which may change.
    package let isUncertain: Bool

    package var user: UInt32 { owner.user }

    package init(_ owner: Owner, confinement: Refusal? = nil, isUncertain: Bool = false) {
        (self.owner, self.confinement, self.isUncertain) = (owner, confinement, isUncertain)
    }

    package init(user: UInt32) { self.init(Owner(user: user)) }

    /// Whether it may change what belongs to a user.
    package func mayChange(_ owner: UInt32) -> Bool { user == 0 || user == owner }
}

/// What a call counts as.
package struct CallLoad: Hashable, Sendable {
    /// Its size in memory, in bytes.
    package let size: Int
    /// Whether it is one of the limited number of calls that a user may have pending. If not, its size alone counts.
    package let isCounted: Bool

    /// From this size on a call may take longer than a slice. On the wire it has 16 KB.
    private static let largeSize = 33_280

    var isLarge: Bool { size > CallLoad.largeSize }

    package init(size: Int, isCounted: Bool = true) {
        self.size = size
        self.isCounted = isCounted
    }
}

/// What is given back when a call is over.
package struct CallCharge: Hashable, Sendable {
    let sender: String
    package let caller: Caller
    package let load: CallLoad
}

/// What calls are pending, and whether there may be more.
///
/// A user has quotas. A program that is an owner by itself may have as much pending as it leaves to the user's other
/// programs: the first one half of a quota, a second one half of the rest. So however much one demands, there is room for
/// the next.
struct CallLedger {
    struct Usage {
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
    private(set) var users: [UInt32: Usage] = [:]
    private var programs: [Owner: Usage] = [:]

    init(_ quotas: Quotas) { self.quotas = quotas }

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

/// How much of what was answered may still be unread.
///
/// A bus keeps a message until its recipient has read it. A default dbus-daemon charges it to the sender meanwhile, and
/// stops reading from a connection that has 127 MB under way. So a program that asks and does not read the answers
/// could silence the one that answers. Beyond a limit for each connection, and for each owner, calls are refused
/// without computing anything, and far beyond it they are not answered at all.
///
/// Sent bytes count as unread until the bus has reported how much it still keeps for the connection. It is asked when
/// that may be a lot.
package struct UnreadAnswers {
    /// What may be unread before the bus is asked, and before nothing more is computed for a connection, in bytes.
    package static let askedAt = 64 << 10
    package static let limit = 256 << 10
    /// Refusals are small, and the bus's report may come late: it stands in line behind all calls.
    package static let silentAt = 4 << 20
    /// The same for all connections of an owner.
    package static let ownerAskedAt = 1 << 20
    package static let ownerLimit = 8 << 20
    /// The owner of connections that the bus has yet to identify. They belong to different users, and each is limited
    /// by itself: answers that some leave unread do not keep others out.
    package static let strangers = Owner(user: .max)
    /// How many connections of an owner are remembered before the bus is asked which of them still exist.
    private static let many = 256

    private struct Connection {
        var owner: Owner
        var bytes = 0
        /// How much there was when the bus was asked, if it has yet to answer.
        var asked: Int?
        /// How much the bus has reported last.
        var known = 0
    }

    private struct Account {
        var bytes = 0
        var names: Set<String> = []
        /// How much there may be before all its connections are asked about.
        var many = UnreadAnswers.many
        var much = UnreadAnswers.ownerAskedAt
        /// About how many of them the bus has yet to answer.
        var asked = 0
    }

    private var connections: [String: Connection] = [:]
    private var accounts: [Owner: Account] = [:]
    private var questions: [String] = []

    package init() {}

    /// What is not known to have been read.
    package func bytes(of owner: Owner) -> Int { accounts[owner]?.bytes ?? 0 }
    package func bytes(of name: String) -> Int { connections[name]?.bytes ?? 0 }
    /// How many connections are remembered.
    package var count: Int { connections.count }

    /// Why nothing is computed for a call; nil if it is.
    package mutating func refusal(_ name: String, of owner: Owner) -> Refusal? {
        if bytes(of: name) >= UnreadAnswers.limit {
            ask(name)
            return Refusal(.limitExceeded, "\(name) has yet to read \(bytes(of: name) >> 10) KB of answers.")
        }
        if owner != UnreadAnswers.strangers, bytes(of: owner) >= UnreadAnswers.ownerLimit {
            askAboutAll(of: owner)
            return Refusal(.limitExceeded, "\(owner) has yet to read \(bytes(of: owner) >> 20) MB of answers.")
        }
        return nil
    }

    /// Whether not even a refusal is sent.
    package func isIgnored(_ name: String, of owner: Owner) -> Bool {
        bytes(of: name) >= UnreadAnswers.silentAt
            || owner != UnreadAnswers.strangers && bytes(of: owner) >= 2 * UnreadAnswers.ownerLimit
    }

    /// Something has been sent in reply to a call.
    package mutating func hasAnswered(_ name: String, of owner: Owner, bytes: Int) {
        if connections[name]?.owner == UnreadAnswers.strangers { move(name, to: owner) }
        let owner = connections[name]?.owner ?? owner
        connections[name, default: Connection(owner: owner)].bytes += bytes
        accounts[owner, default: Account()].bytes += bytes
        accounts[owner]?.names.insert(name)
        if let connection = connections[name], connection.bytes - connection.known >= UnreadAnswers.askedAt {
            ask(name)
        }
        if let account = accounts[owner], account.names.count > account.many || account.bytes > account.much {
            askAboutAll(of: owner)
        }
    }

    /// Takes the connections about which the bus is to be asked now; each ends in `isKept`.
    package mutating func takeQuestions() -> [String] {
        guard !questions.isEmpty else { return [] }
        defer { questions = [] }
        return questions
    }

    /// The bus has reported how much it keeps for a connection.
    ///
    /// - Parameter bytes: 0 if the connection has left. Others' messages may be among it.
    package mutating func isKept(_ bytes: Int, for name: String) {
        guard let connection = connections[name], let asked = connection.asked else { return }
        let read = asked - min(asked, max(0, bytes))
        connections[name]?.asked = nil
        connections[name]?.bytes -= read
        connections[name]?.known = asked - read
        if connections[name]?.bytes == 0 { connections[name] = nil }
        guard var account = accounts.removeValue(forKey: connection.owner) else { return }
        account.bytes -= read
        account.asked -= 1
        if connections[name] == nil { account.names.remove(name) }
        if account.asked == 0 {
            // Until there is much more again, the answers would be much the same.
            account.many = max(UnreadAnswers.many, 2 * account.names.count)
            account.much = max(UnreadAnswers.ownerAskedAt, account.bytes + account.bytes / 2)
        }
        if !account.names.isEmpty { accounts[connection.owner] = account }
    }

    /// The bus has identified a connection.
    private mutating func move(_ name: String, to owner: Owner) {
        guard let connection = connections[name], connection.owner != owner else { return }
        connections[name]?.owner = owner
        for (account, sign) in [(connection.owner, -1), (owner, 1)] {
            accounts[account, default: Account()].bytes += sign * connection.bytes
            if connection.asked != nil { accounts[account]?.asked += sign }
        }
        accounts[owner]?.names.insert(name)
        accounts[connection.owner]?.names.remove(name)
        if accounts[connection.owner]?.names.isEmpty == true { accounts[connection.owner] = nil }
    }

    private mutating func ask(_ name: String) {
        guard let connection = connections[name], connection.asked == nil else { return }
        connections[name]?.asked = connection.bytes
        accounts[connection.owner]?.asked += 1
        questions.append(name)
    }

    private mutating func askAboutAll(of owner: Owner) {
        guard let account = accounts[owner], account.asked == 0 else { return }
        for name in account.names { ask(name) }
    }
}
