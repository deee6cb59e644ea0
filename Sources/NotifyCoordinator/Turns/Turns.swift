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
