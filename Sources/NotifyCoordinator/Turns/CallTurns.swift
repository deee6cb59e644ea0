// SPDX-License-Identifier: Apache-2.0

/// Calls in the order in which they are handled: users take turns, and so do the connections of a user, while the calls
/// of one connection never overtake each other. So nobody's calls wait for all of somebody else's.
///
/// It knows no bus and no clock. Whoever takes calls from a connection to the bus drives it as follows, from one thread:
///
/// 1. A call has arrived: ask `refusal(from:_:)` before its arguments are read, since a refusal must be cheap, and then
///    pass the call to `take`. `mayBegin` says whether there is time left in this pass: a few milliseconds for all calls
///    together, after which the bus must be read again.
/// 2. The verdict `begin` means that it is the call's turn: handle it now. `waits` means that `next` returns it later.
///    `unknown` means that the bus must be asked for the sender's user; pass the reply to `identify`. This is done once for
///    each sender, and its calls are kept meanwhile.
/// 3. As long as there is time in a pass, handle what `next` returns. `isEmpty` says whether another pass is needed: if it
///    is true, there is no reason to wake up.
/// 4. When a call that has begun is answered, or nobody will answer it any more, pass its charge to `end`: until then it
///    counts towards the quota of its user, as do those that wait.
///
/// What arrives from a connection besides calls, and must not overtake them, is passed to `follow`.
package struct CallTurns<Call> {
    package enum Verdict: Equatable {
        case begin(CallCharge)
        case waits
        /// It waits until its sender is known.
        case unknown
        case refused(Refusal)
    }

    /// A call whose turn it is.
    package struct Turn {
        package let call: Call
        package let sender: String
        /// Nil if it is no call, but has followed one.
        package let charge: CallCharge?
    }

    private struct Entry {
        let call: Call
        let load: CallLoad?
    }

    /// A connection with waiting calls.
    private struct Sender {
        let user: UInt32
        var calls = Fifo<Entry>()
    }

    /// How many connections' users are remembered; beyond that the bus is asked again.
    private static var memory: Int { 4_096 }

    /// How many calls of one unknown connection may wait, how many of all together, and how large these may be. The last
    /// limit does not apply to small ones, which the others limit well enough: nobody can keep them out.
    package static var callsOfStranger: Int { 8 }
    package static var callsOfStrangers: Int { 4_096 }
    private static var bytesOfStrangers: Int { 16 << 20 }
    private static var smallSize: Int { 4_096 }

    private var ledger: Ledger
    private var users: [String: UInt32] = [:]
    private var senders: [String: Sender] = [:]
    private var turns = Turns<String>()
    private var strangers: [String: Fifo<Entry>] = [:]
    private var strangeCalls = 0
    private var strangeBytes = 0

    package init(_ quotas: Quotas) {
        ledger = Ledger(quotas)
    }

    /// Whether no call is waiting for its turn.
    package var isEmpty: Bool { turns.isEmpty }

    /// Whether a connection has calls waiting.
    package func isWaiting(_ sender: String) -> Bool { senders[sender] != nil || strangers[sender] != nil }

    /// How many calls of a user are pending: waiting, or not answered yet.
    package func pendingCount(of user: UInt32) -> Int { ledger[user].calls }

    /// The user of a connection, if the bus has reported it.
    package func user(of sender: String) -> UInt32? { senders[sender]?.user ?? users[sender] }

    // MARK: - Calls that arrive

    /// Why a call is refused, whatever it asks for; nil if it is not.
    package func refusal(from sender: String, _ load: CallLoad) -> Refusal? {
        do throws(Refusal) {
            if let user = user(of: sender) {
                try ledger.checkCall(load.size, isCounted: load.isCounted, of: user)
            } else {
                try checkStranger(sender, load.size)
            }
            return nil
        } catch {
            return error
        }
    }

    /// A call has arrived.
    ///
    /// - Parameter mayBegin: whether there is time to handle it now, unless it is somebody else's turn.
    package mutating func take(_ call: Call, _ load: CallLoad, from sender: String, mayBegin: Bool) -> Verdict {
        do throws(Refusal) {
            guard let user = user(of: sender) else { return try park(call, load, from: sender) }
            if mayBegin, turns.isEmpty {
                try ledger.beginCall(load.size, isCounted: load.isCounted, of: user)
                return .begin(CallCharge(user: user, load: load))
            }
            try enqueue(call, load, from: sender, of: user)
            return .waits
        } catch {
            return .refused(error)
        }
    }

    /// Something has arrived that must not overtake the calls of a connection. It counts towards no quota.
    ///
    /// - Returns: false if nothing is waiting, in which case it is to be handled now.
    package mutating func follow(_ call: Call, from sender: String) -> Bool {
        guard senders[sender] != nil else { return false }
        senders[sender]?.calls.append(Entry(call: call, load: nil))
        return true
    }

    private mutating func enqueue(_ call: Call, _ load: CallLoad, from sender: String, of user: UInt32) throws(Refusal)
    {
        try ledger.beginCall(load.size, isCounted: load.isCounted, of: user)
        if senders[sender] == nil {
            senders[sender] = Sender(user: user)
            turns.append(sender, of: user)
        }
        senders[sender]?.calls.append(Entry(call: call, load: load))
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
        strangers[sender, default: Fifo()].append(Entry(call: call, load: load))
        strangeCalls += 1
        strangeBytes += load.size
        return isFirst ? .unknown : .waits
    }

    /// The bus has reported who a sender is. Its calls now wait for their turn.
    ///
    /// - Parameter user: nil if the bus does not say, for instance because the connection has gone.
    /// - Returns: the calls that are not handled, and why; without a user, all of them.
    package mutating func identify(_ sender: String, as user: UInt32?) -> [(call: Call, refusal: Refusal)] {
        if let user {
            if users.count >= CallTurns.memory { users.removeAll() }
            users[sender] = user
        }
        guard var calls = strangers.removeValue(forKey: sender) else { return [] }
        var refused: [(Call, Refusal)] = []
        while let entry = calls.popFirst() {
            guard let load = entry.load else { continue }
            strangeCalls -= 1
            strangeBytes -= load.size
            do throws(Refusal) {
                guard let user else { throw Refusal.unidentified(sender) }
                try enqueue(entry.call, load, from: sender, of: user)
            } catch {
                refused.append((entry.call, error))
            }
        }
        return refused
    }

    // MARK: - Turns

    /// Takes the next call.
    package mutating func next() -> Turn? {
        guard let name = turns.next(), let entry = senders[name]?.calls.popFirst(), let user = senders[name]?.user
        else {
            return nil
        }
        if senders[name]?.calls.isEmpty == true { senders[name] = nil } else { turns.append(name, of: user) }
        return Turn(call: entry.call, sender: name, charge: entry.load.map { CallCharge(user: user, load: $0) })
    }

    /// A call that had begun is over.
    package mutating func end(_ charge: CallCharge) {
        ledger.endCall(charge.load.size, isCounted: charge.load.isCounted, of: charge.user)
    }
}

/// What a call counts as.
package struct CallLoad: Hashable, Sendable {
    /// Its size in memory, in bytes.
    package let size: Int
    /// Whether it is one of the limited number of calls that a user may have pending. If not, its size alone counts.
    package let isCounted: Bool

    package init(size: Int, isCounted: Bool = true) {
        self.size = size
        self.isCounted = isCounted
    }
}

/// What is given back to a user when a call is over.
package struct CallCharge: Hashable, Sendable {
    package let user: UInt32
    package let load: CallLoad
}
