// SPDX-License-Identifier: Apache-2.0

import NotifyNames

/// Calls in the order in which they are handled: owners take turns, and so do the connections of an owner, while the
/// calls of one connection never overtake each other. So nobody's calls wait for all of somebody else's.
///
/// It knows no bus and no clock. Whoever takes calls from a connection to the bus drives it as follows, from one thread:
///
/// 1. A call has arrived: ask `refusal(from:_:)` before its arguments are read, since a refusal must be cheap, and then
///    pass the call to `take`. `mayBegin` says whether there is time left in this pass: a few milliseconds for all calls
///    together, after which the bus must be read again.
/// 2. The verdict `begin` means that it is the call's turn: handle it now. `waits` means that `next` returns it later.
///    `unknown` means that the bus must be asked who the sender is; pass the reply to `identify`. This is done once for
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

    /// A connection that the bus has identified.
    private struct Sender {
        let owner: Owner
        /// Those that wait.
        var calls = Fifo<Entry>()
        /// How many wait or have begun.
        var pending = 0

        var isIdle: Bool { calls.isEmpty && pending == 0 }
    }

    /// How many connections are remembered besides those with pending calls; beyond that the bus is asked again.
    package static var memory: Int { 4_096 }

    /// How many calls of one unknown connection may wait, how many of all together, and how large these may be. The last
    /// limit does not apply to small ones, which the others limit well enough: nobody can keep them out.
    package static var callsOfStranger: Int { 8 }
    package static var callsOfStrangers: Int { 4_096 }
    private static var bytesOfStrangers: Int { 16 << 20 }
    private static var smallSize: Int { 4_096 }

    private var ledger: CallLedger
    private var senders: [String: Sender] = [:]
    /// How many of them there may be before idle ones are forgotten.
    private var room = CallTurns.memory
    private var turns = Turns<Owner, String>()
    private var strangers: [String: Fifo<Entry>] = [:]
    private var strangeCalls = 0
    private var strangeBytes = 0

    package init(_ quotas: Quotas) {
        ledger = CallLedger(quotas)
    }

    /// Whether no call is waiting for its turn.
    package var isEmpty: Bool { turns.isEmpty }

    /// How many calls of a user are pending: waiting, or not answered yet.
    package func pendingCount(of user: UInt32) -> Int { ledger.count(of: user) }

    /// The owner of a connection, if the bus has reported it. It is known as long as a call of the connection is pending.
    package func owner(of sender: String) -> Owner? { senders[sender]?.owner }

    // MARK: - Calls that arrive

    /// Why a call is refused, whatever it asks for; nil if it is not.
    package func refusal(from sender: String, _ load: CallLoad) -> Refusal? {
        do throws(Refusal) {
            if let owner = owner(of: sender) {
                try ledger.check(load, of: owner)
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
            guard let owner = owner(of: sender) else { return try park(call, load, from: sender) }
            try ledger.begin(load, of: owner)
            senders[sender]?.pending += 1
            if mayBegin, turns.isEmpty { return .begin(CallCharge(sender: sender, owner: owner, load: load)) }
            enqueue(Entry(call: call, load: load), from: sender, of: owner)
            return .waits
        } catch {
            return .refused(error)
        }
    }

    /// Something has arrived that must not overtake the calls of a connection. It counts towards no quota.
    ///
    /// - Returns: false if nothing is waiting, in which case it is to be handled now.
    package mutating func follow(_ call: Call, from sender: String) -> Bool {
        guard senders[sender]?.calls.isEmpty == false else { return false }
        senders[sender]?.calls.append(Entry(call: call, load: nil))
        return true
    }

    private mutating func enqueue(_ entry: Entry, from sender: String, of owner: Owner) {
        if senders[sender]?.calls.isEmpty == true { turns.append(sender, of: owner) }
        senders[sender]?.calls.append(entry)
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
    /// - Parameter owner: nil if the bus does not say, for instance because the connection has gone.
    /// - Returns: the calls that are not handled, and why; without an owner, all of them.
    package mutating func identify(_ sender: String, as owner: Owner?) -> [(call: Call, refusal: Refusal)] {
        if let owner, senders[sender] == nil {
            if senders.count >= room {
                senders = senders.filter { !$0.value.isIdle }
                room = max(CallTurns.memory, 2 * senders.count)
            }
            senders[sender] = Sender(owner: owner)
        }
        guard var calls = strangers.removeValue(forKey: sender) else { return [] }
        var refused: [(Call, Refusal)] = []
        while let entry = calls.popFirst() {
            guard let load = entry.load else { continue }
            strangeCalls -= 1
            strangeBytes -= load.size
            do throws(Refusal) {
                guard let owner else { throw Refusal.unidentified(sender) }
                try ledger.begin(load, of: owner)
                senders[sender]?.pending += 1
                enqueue(entry, from: sender, of: owner)
            } catch {
                refused.append((entry.call, error))
            }
        }
        return refused
    }

    // MARK: - Turns

    /// Takes the next call.
    package mutating func next() -> Turn? {
        guard let name = turns.next(), let entry = senders[name]?.calls.popFirst(), let owner = senders[name]?.owner
        else {
            return nil
        }
        if senders[name]?.calls.isEmpty == false { turns.append(name, of: owner) }
        let charge = entry.load.map { CallCharge(sender: name, owner: owner, load: $0) }
        return Turn(call: entry.call, sender: name, charge: charge)
    }

    /// A call that had begun is over.
    package mutating func end(_ charge: CallCharge) {
        ledger.end(charge.load, of: charge.owner)
        senders[charge.sender]?.pending -= 1
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

/// What is given back when a call is over.
package struct CallCharge: Hashable, Sendable {
    let sender: String
    package let owner: Owner
    package let load: CallLoad
}
