// SPDX-License-Identifier: Apache-2.0

import NotifyNames

/// Round robin: owners with work take turns, and so do the members of each owner.
///
/// A member is whatever work is done for: a subscriber of names, or a connection that has calls waiting. It is in line once;
/// if there is more to do for it after its turn, it is appended again.
package struct Turns<Owner: Hashable, Member> {
    private var owners = Fifo<Owner>()
    private var members: [Owner: Fifo<Member>] = [:]

    package init() {}

    package var isEmpty: Bool { owners.isEmpty }

    /// The owners that wait, in order.
    var line: [Owner] { owners.all }

    func count(of owner: Owner) -> Int { members[owner]?.count ?? 0 }

    package mutating func append(_ member: Member, of owner: Owner) {
        if members[owner] == nil { owners.append(owner) }
        members[owner, default: Fifo()].append(member)
    }

    /// Takes the next member of the owner whose turn it is.
    ///
    /// - Parameter mayGoOn: whether it can be an owner's turn. If not, those after it come first; this should be so for few.
    package mutating func next(where mayGoOn: (Owner) -> Bool = { _ in true }) -> Member? {
        for _ in 0..<owners.count {
            guard let owner = owners.popFirst() else { return nil }
            guard mayGoOn(owner) else {
                owners.append(owner)
                continue
            }
            let member = members[owner]?.popFirst()
            assert(member != nil, "It is the turn of an owner who has nothing in line.")
            if members[owner]?.isEmpty == true { members[owner] = nil } else { owners.append(owner) }
            return member
        }
        return nil
    }

    /// Removes members of an owner from the line, for which it looks at all of them.
    mutating func remove(of owner: Owner, where isRemoved: (Member) -> Bool) {
        guard let line = members.removeValue(forKey: owner) else { return }
        let rest = line.filter { !isRemoved($0) }
        if rest.isEmpty { owners = owners.filter { $0 != owner } } else { members[owner] = rest }
    }
}

extension Turns: Equatable where Member: Equatable {}
extension Turns: Hashable where Member: Hashable {}

/// Which calls to observers are under way, and which must wait for their turn.
///
/// A bus lets a connection wait for a limited number of replies: a default system bus for 128. It forgets none of them,
/// however late. So owners take turns, each has a small share, and an observer that does not reply in time uses up some
/// of its owner's share and no other's.
package struct CallWindow<Call: Hashable, Content> {
    /// How many calls may wait for replies that are still in time.
    package static var limit: Int { 64 }
    /// How many may wait in all, including those that are late.
    package static var totalLimit: Int { 112 }
    /// How many of these may belong to one owner.
    package static var share: Int { 8 }

    private struct Begun: Hashable {
        let owner: Owner
        /// Until when its reply is in time, in nanoseconds of the monotonic clock.
        let end: Int64
        var isLate = false
    }

    fileprivate struct Waiting {
        let owner: Owner
        var content: Content
    }

    private struct Count: Hashable {
        var waiting = 0
        /// How many calls have begun and are unanswered.
        var begun = 0
    }

    private var begun: [Call: Begun] = [:]
    private var waiting: [Call: Waiting] = [:]
    private var counts: [Owner: Count] = [:]
    /// Among those that wait are some that have been forgotten since.
    private(set) var turns = Turns<Owner, Call>()
    private var lateCount = 0
    /// No reply is late before this time.
    private var nextEnd = Int64.max
    private let limit: Int

    /// - Parameter limit: how many may wait for replies that are still in time.
    package init(limit: Int = CallWindow.limit) { self.limit = limit }

    /// When calls that wait may go on although there are no replies; nil if none waits.
    package var deadline: Int64? { waiting.isEmpty || nextEnd == .max ? nil : nextEnd }

    /// Whether a call is to be made.
    package var isWaiting: Bool { !waiting.isEmpty }

    /// Whether a call has been made that is not answered yet.
    func hasBegun(_ call: Call) -> Bool { begun[call] != nil }

    var isEmpty: Bool { begun.isEmpty && waiting.isEmpty && counts.isEmpty && turns.isEmpty }

    /// A call that is waiting already keeps its place, and is made with the new content.
    package mutating func enqueue(_ call: Call, _ content: Content, of owner: Owner) {
        if waiting[call] != nil {
            waiting[call]?.content = content
            return
        }
        waiting[call] = Waiting(owner: owner, content: content)
        counts[owner, default: Count()].waiting += 1
        turns.append(call, of: owner)
    }

    /// A call is made now, whether it is its turn or not.
    package mutating func begin(_ call: Call, of owner: Owner, now: Int64) {
        hasAnswered(call)
        let end = now + ChangeRequest.limit
        begun[call] = Begun(owner: owner, end: end)
        counts[owner, default: Count()].begun += 1
        nextEnd = min(nextEnd, end)
    }

    /// There was a reply, or there will be none.
    package mutating func hasAnswered(_ call: Call) {
        guard let entry = begun.removeValue(forKey: call) else { return }
        if entry.isLate { lateCount -= 1 }
        counts[entry.owner]?.begun -= 1
        forgetIfEmpty(entry.owner)
    }

    /// The observer has gone.
    package mutating func forget(_ call: Call) {
        hasAnswered(call)
        guard let owner = waiting.removeValue(forKey: call)?.owner else { return }
        counts[owner]?.waiting -= 1
        // Otherwise, observers that come and go would fill the line of one that never replies.
        let waitingCount = counts[owner]?.waiting ?? 0
        if waitingCount == 0 || turns.count(of: owner) > 2 * waitingCount + 64 {
            var seen: Set<Call> = []
            turns.remove(of: owner) { waiting[$0] == nil || !seen.insert($0).inserted }
        }
        forgetIfEmpty(owner)
    }

    /// The next call to be made.
    package mutating func next(now: Int64) -> (call: Call, content: Content)? {
        noteLate(now)
        while begun.count - lateCount < limit, begun.count < CallWindow.totalLimit,
            let call = turns.next(where: { counts[$0, default: Count()].begun < CallWindow.share })
        {
            guard let one = waiting.removeValue(forKey: call) else { continue }
            counts[one.owner]?.waiting -= 1
            begin(call, of: one.owner, now: now)
            return (call, one.content)
        }
        return nil
    }

    private mutating func forgetIfEmpty(_ owner: Owner) {
        if let count = counts[owner], count.waiting == 0, count.begun == 0 { counts[owner] = nil }
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

extension CallWindow: Equatable where Content: Equatable {}
extension CallWindow: Hashable where Content: Hashable {}
extension CallWindow.Waiting: Equatable where Content: Equatable {}
extension CallWindow.Waiting: Hashable where Content: Hashable {}

/// With whom what the agent has is shared: one owner's calls neither delay nor displace another's.
///
/// Other users are one owner each. Programs of the agent's own user are owners by themselves; otherwise, on a session bus,
/// all would depend on the worst of them.
package struct Owner: Hashable, Sendable {
    package enum Program: Hashable, Sendable {
        case process(Int32)
        /// An application in a sandbox, with all its processes: a portal starts as many for it as it asks for.
        case sandbox(String)
        /// What the bus can't tell apart.
        case unknown
    }

    package let user: UInt32
    /// Nil if all programs of the user are one owner.
    package let program: Program?

    package init(user: UInt32, program: Program? = nil) {
        self.user = user
        self.program = program
    }

    package init(user: UInt32, program: Program, agentUser: UInt32?) {
        self.init(user: user, program: user == agentUser ? program : nil)
    }

    package init(_ process: ProcessID, agentUser: UInt32?) {
        self.init(user: process.user, program: .process(process.pid), agentUser: agentUser)
    }
}

extension Owner: CustomStringConvertible {
    package var description: String {
        switch program {
        case nil: "User \(user)"
        case .process(let pid): "Process \(pid)"
        case .sandbox(let application): "The sandboxed application \(application)"
        case .unknown: "A program of user \(user)"
        }
    }
}
