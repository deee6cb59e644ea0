// SPDX-License-Identifier: Apache-2.0

/// Round robin: users with work take turns, and so do the members of each user.
///
/// A member is whatever work is done for: a holder of names, or a connection that has calls waiting. It is in line once;
/// if there is more to do for it after its turn, it is appended again.
package struct Turns<Member> {
    private var users = Fifo<UInt32>()
    private var members: [UInt32: Fifo<Member>] = [:]

    package init() {}

    package var isEmpty: Bool { users.isEmpty }

    package mutating func append(_ member: Member, of user: UInt32) {
        if members[user] == nil { users.append(user) }
        members[user, default: Fifo()].append(member)
    }

    /// Takes the next member of the user whose turn it is.
    package mutating func next() -> Member? {
        guard let user = users.popFirst(), let member = members[user]?.popFirst() else { return nil }
        if members[user]?.isEmpty == true { members[user] = nil } else { users.append(user) }
        return member
    }
}

/// First in, first out. Both take constant time on average, and what was taken is no longer kept in memory.
package struct Fifo<Element> {
    private var elements: [Element?] = []
    private var head = 0

    package init() {}

    package var count: Int { elements.count - head }
    package var isEmpty: Bool { head == elements.count }

    package mutating func append(_ element: Element) { elements.append(element) }

    package mutating func popFirst() -> Element? {
        guard head < elements.count else { return nil }
        let element = elements[head].take()
        head += 1
        if isEmpty {
            elements.removeAll(keepingCapacity: elements.capacity <= 64)
            head = 0
        } else if head >= 64, head * 2 >= elements.count {
            elements.removeFirst(head)
            head = 0
        }
        return element
    }
}
