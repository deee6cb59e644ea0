// SPDX-License-Identifier: Apache-2.0

/// Which calls to observers are under way, and which must wait for their turn.
///
/// A bus lets a connection wait for a limited number of replies: a default system bus for 128. It forgets none of them,
/// however late. So owners take turns, each has a small share, and an observer that does not reply in time uses up some of
/// its owner's share and nobody else's.
package struct CallWindow<Call: Hashable, Content> {
    /// Who answers for observers that don't reply.
    package enum Owner: Hashable, Sendable {
        case user(UInt32)
        /// For the agent's own user, all of whose programs would otherwise depend on the worst of them.
        case process(ProcessID)

        package init(_ process: ProcessID, agentUser: UInt32?) {
            self = process.user == agentUser ? .process(process) : .user(process.user)
        }
    }

    /// How many calls may wait for replies that are still in time.
    package static var limit: Int { 64 }
    /// How many may wait in all, including those that are late.
    package static var totalLimit: Int { 112 }
    /// How many of these may belong to one owner.
    package static var share: Int { 8 }

    private struct Begun {
        let owner: Owner
        /// Until when its reply is in time, in nanoseconds of the monotonic clock.
        let end: Int64
        var isLate = false
    }

    private struct Line {
        /// In order; those without content have been forgotten since.
        var calls = Fifo<Call>()
        var waitingCount = 0
        /// How many calls have begun and are unanswered.
        var begunCount = 0
        /// Whether it is in the order of turns.
        var isInTurn = false
    }

    private var begun: [Call: Begun] = [:]
    private var waiting: [Call: (owner: Owner, content: Content)] = [:]
    private var lines: [Owner: Line] = [:]
    private var turns = Fifo<Owner>()
    private var lateCount = 0
    /// No reply is late before this time.
    private var nextEnd = Int64.max

    package init() {}

    /// When calls that wait may go on although nobody replies; nil if none waits.
    package var deadline: Int64? { waiting.isEmpty || nextEnd == .max ? nil : nextEnd }

    var isEmpty: Bool { begun.isEmpty && waiting.isEmpty && lines.isEmpty }
    func lineLength(of owner: Owner) -> Int { lines[owner]?.calls.count ?? 0 }

    /// A call that is waiting already keeps its place, and is made with the new content.
    package mutating func enqueue(_ call: Call, _ content: Content, of owner: Owner) {
        if let known = waiting[call] {
            waiting[call] = (known.owner, content)
            return
        }
        waiting[call] = (owner, content)
        lines[owner, default: Line()].calls.append(call)
        lines[owner]?.waitingCount += 1
        takeTurn(owner)
    }

    /// A call is made now, whether it is its turn or not.
    package mutating func begin(_ call: Call, of owner: Owner, now: Int64) {
        hasAnswered(call)
        let end = now + ChangeRequest.limit
        begun[call] = Begun(owner: owner, end: end)
        lines[owner, default: Line()].begunCount += 1
        nextEnd = min(nextEnd, end)
    }

    /// There was a reply, or there will be none.
    package mutating func hasAnswered(_ call: Call) {
        guard let entry = begun.removeValue(forKey: call) else { return }
        if entry.isLate { lateCount -= 1 }
        lines[entry.owner]?.begunCount -= 1
        takeTurn(entry.owner)
        forgetIfEmpty(entry.owner)
    }

    /// The observer has gone.
    package mutating func forget(_ call: Call) {
        hasAnswered(call)
        guard let owner = waiting.removeValue(forKey: call)?.owner, var line = lines.removeValue(forKey: owner) else {
            return
        }
        line.waitingCount -= 1
        // Otherwise, observers that come and go would fill the line of one that never replies.
        if line.calls.count > 2 * line.waitingCount + 64 {
            var rest = Fifo<Call>()
            var seen: Set<Call> = []
            while let other = line.calls.popFirst() {
                if waiting[other] != nil, seen.insert(other).inserted { rest.append(other) }
            }
            line.calls = rest
        }
        lines[owner] = line
        forgetIfEmpty(owner)
    }

    /// The next call to be made.
    package mutating func next(now: Int64) -> (call: Call, content: Content)? {
        noteLate(now)
        while begun.count - lateCount < CallWindow.limit, begun.count < CallWindow.totalLimit,
            let owner = turns.popFirst()
        {
            lines[owner]?.isInTurn = false
            guard let line = lines[owner], line.begunCount < CallWindow.share else { continue }
            guard let (call, content) = popFirst(of: owner) else {
                forgetIfEmpty(owner)
                continue
            }
            begin(call, of: owner, now: now)
            takeTurn(owner)
            return (call, content)
        }
        return nil
    }

    private mutating func popFirst(of owner: Owner) -> (Call, Content)? {
        while let call = lines[owner]?.calls.popFirst() {
            guard let content = waiting.removeValue(forKey: call)?.content else { continue }
            lines[owner]?.waitingCount -= 1
            return (call, content)
        }
        return nil
    }

    private mutating func takeTurn(_ owner: Owner) {
        guard let line = lines[owner], !line.isInTurn, line.waitingCount > 0, line.begunCount < CallWindow.share else {
            return
        }
        lines[owner]?.isInTurn = true
        turns.append(owner)
    }

    private mutating func forgetIfEmpty(_ owner: Owner) {
        if let line = lines[owner], line.waitingCount == 0, line.begunCount == 0, !line.isInTurn { lines[owner] = nil }
    }

    private mutating func noteLate(_ now: Int64) {
        guard nextEnd <= now else { return }
        nextEnd = .max
        for (call, entry) in begun where !entry.isLate {
            if entry.end <= now {
                begun[call]?.isLate = true
                lateCount += 1
            } else {
                nextEnd = min(nextEnd, entry.end)
            }
        }
    }
}

/// A call to which a connection has yet to reply.
enum ObserverCall: Hashable {
    case state(ConnectionID)
    /// All that was delivered to it.
    case delivery(ConnectionID)
}
