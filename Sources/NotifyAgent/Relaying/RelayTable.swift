// SPDX-License-Identifier: Apache-2.0

package import NotifyCoordinator
package import NotifyNames

/// What the relay hears for whom, and what is waiting for each program.
///
/// A value that knows no bus: it is told what happens, and answers which names to hear and what to pass on.
package struct RelayTable: Sendable {
    package typealias Post = RelayQueue.Post

    struct Client: Sendable {
        /// The process that the connection belongs to, which is the sandbox's proxy.
        let process: ProcessID
        var subjects = Subjects()
        var state: LifecycleState
        /// Whether the relay hears its names.
        var isHearing = false
        /// Whether the relay may pass on what it hears.
        var isPassing = false
        var queue = RelayQueue()
        /// The last batch, until the client has read it.
        var unanswered: [Post] = []
        /// How many posts have been queued, and how many of them the client has read or will never get.
        var accepted: UInt64 = 0
        var settled: UInt64 = 0
        /// Who is waiting for that many to be settled.
        var waiters: [(count: UInt64, number: Int)] = []
        /// The size of the waiting names that nothing else keeps in memory.
        var bytes = 0
        /// How many posts were dropped because there was no room.
        var dropped: UInt64 = 0
    }

    /// How much memory the waiting names of one process's connections may take up, in bytes. Names observed in full don't
    /// count, because their number is limited anyway.
    private let room: Int
    private var clients: [String: Client] = [:]
    private var names: [NotifyName: [String]] = [:]
    private var prefixes = PrefixIndex<[String]>()
    private var bytes: [ProcessID: Int] = [:]

    package init(room: Int = Quotas().pendingBytes) { self.room = room }

    package var clientNames: [String] { Array(clients.keys) }
    package var count: Int { clients.count }
    package var ruleCount: Int { names.count + prefixes.count }
    package func contains(_ name: String) -> Bool { clients[name] != nil }
    package func droppedCount(of name: String) -> UInt64 { clients[name]?.dropped ?? 0 }
    package func waitingCount(of name: String) -> Int { clients[name]?.queue.count ?? 0 }

    // MARK: - Who observes what

    /// - Returns: false if the client is already known; then nothing changes.
    package mutating func enter(_ name: String, of process: ProcessID, in state: LifecycleState) -> Bool {
        guard clients[name] == nil else { return false }
        var client = Client(process: process, state: state)
        client.isHearing = state != .background
        client.isPassing = state == .foreground
        if state == .suspended { client.queue.keepEachOnce(true) }
        clients[name] = client
        return true
    }

    /// - Returns: what must be heard from now on.
    package mutating func add(_ subjects: Subjects, to name: String) -> Subjects {
        guard let client = clients[name] else { return Subjects() }
        let new = subjects.subtracting(client.subjects)
        clients[name]?.subjects.formUnion(new)
        return client.isHearing ? enter(new, for: name) : Subjects()
    }

    /// - Returns: what need not be heard any more.
    package mutating func remove(_ subjects: Subjects, from name: String) -> Subjects {
        guard let client = clients[name] else { return Subjects() }
        let old = subjects.intersection(client.subjects)
        let rest = client.subjects.subtracting(old)
        change(name) { client in
            client.subjects = rest
            guard !client.queue.isEmpty else { return }
            let before = client.queue.count
            client.queue.keep { rest.contains($0) }
            client.settled += UInt64(before - client.queue.count)
        }
        return client.isHearing ? leave(old, for: name) : Subjects()
    }

    /// - Returns: what need not be heard any more, and who is waiting for something that will never come.
    package mutating func forget(_ name: String) -> (unheard: Subjects, waiters: [Int]) {
        guard let client = clients[name] else { return (Subjects(), []) }
        let unheard = client.isHearing ? leave(client.subjects, for: name) : Subjects()
        account(-client.bytes, client.process)
        clients[name] = nil
        return (unheard, client.waiters.map(\.number))
    }

    package func subjects(of name: String) -> Subjects? { clients[name]?.subjects }

    // MARK: - States

    /// Prepares for a state before the client is told: from now on posts are passed on, kept, or no longer heard.
    ///
    /// - Returns: what must be heard from now on, and what need not be heard any more.
    package mutating func prepare(_ state: LifecycleState, of name: String) -> (heard: Subjects, unheard: Subjects) {
        guard let client = clients[name] else { return (Subjects(), Subjects()) }
        if state != .foreground { clients[name]?.isPassing = false }
        clients[name]?.queue.keepEachOnce(state == .suspended)
        clients[name]?.isHearing = state != .background
        guard state == .background else {
            return (client.isHearing ? Subjects() : enter(client.subjects, for: name), Subjects())
        }
        change(name) { client in
            client.settled += UInt64(client.queue.count)
            client.queue.removeAll()
        }
        return (Subjects(), client.isHearing ? leave(client.subjects, for: name) : Subjects())
    }

    /// The client has confirmed its state.
    package mutating func confirm(_ state: LifecycleState, of name: String) {
        clients[name]?.state = state
        clients[name]?.isPassing = state == .foreground
    }

    // MARK: - Posts

    /// A post has arrived.
    ///
    /// - Returns: whom it is for.
    package mutating func posted(_ post: Post) -> [String] {
        let exact = names[post.name] ?? []
        for name in exact { append(post, for: name, isKept: true) }
        guard !prefixes.isEmpty else { return exact }
        var all = exact
        var others: [String] = []
        prefixes.forEachPrefix(of: post.name) { _, names in others += names }
        for name in others where !all.contains(name) {
            append(post, for: name, isKept: false)
            all.append(name)
        }
        return all
    }

    /// Queues names for one client that were posted before the relay could pass them on.
    package mutating func keep(_ found: [NotifyName], for name: String) {
        for one in found { append(Post(one, from: ""), for: name, isKept: false) }
    }

    private mutating func append(_ post: Post, for name: String, isKept: Bool) {
        guard let process = clients[name]?.process else { return }
        // The number of names observed in full is limited. Where there is no room for others, they are coalesced.
        let cost = isKept ? 0 : RelayTable.cost(post.name)
        let hasRoom = isKept || bytes[process, default: 0] + cost <= room
        change(name) { client in
            switch client.queue.append(post, mayGrow: hasRoom) {
            case .queued:
                client.accepted += 1
                client.bytes += cost
            case .coalesced: break
            case .full: client.dropped += 1
            }
        }
    }

    /// The next batch for a client; nil if there is none, or the client has yet to read the last one.
    package mutating func takeBatch(for name: String, limit: Int) -> [Post]? {
        guard let client = clients[name], client.isPassing, client.unanswered.isEmpty, !client.queue.isEmpty else {
            return nil
        }
        return change(name) { client in
            client.unanswered = client.queue.take(limit)
            return client.unanswered
        }
    }

    /// The client has read the last batch.
    ///
    /// - Returns: who was waiting for that.
    package mutating func batchIsRead(by name: String) -> [Int] {
        change(name) { client in
            client.settled += UInt64(client.unanswered.count)
            client.unanswered = []
        }
        return takeWaiters(of: name)
    }

    /// The client has not accepted the last batch, which goes back into the queue.
    package mutating func batchWasRefused(by name: String) {
        change(name) { client in
            client.queue.putBack(client.unanswered)
            client.unanswered = []
        }
    }

    // MARK: - Waiting

    /// Waits until everything heard so far is settled.
    ///
    /// - Returns: false if it already is.
    package mutating func wait(_ number: Int, for name: String) -> Bool {
        guard let client = clients[name], client.isPassing, client.settled < client.accepted else { return false }
        clients[name]?.waiters.append((client.accepted, number))
        return true
    }

    /// Those who need not wait any longer.
    package mutating func takeWaiters(of name: String) -> [Int] {
        guard let client = clients[name], !client.waiters.isEmpty else { return [] }
        let due = client.waiters.filter { !client.isPassing || $0.count <= client.settled }
        clients[name]?.waiters.removeAll { one in due.contains { $0.number == one.number } }
        return due.map(\.number)
    }

    // MARK: - Inside

    private static func cost(_ name: NotifyName) -> Int { name.string.utf8.count + 64 }

    @discardableResult
    private mutating func change<Result>(_ name: String, _ change: (inout Client) -> Result) -> Result? {
        guard let index = clients.index(forKey: name) else { return nil }
        let process = clients.values[index].process
        let before = clients.values[index].bytes
        let result = change(&clients.values[index])
        if clients.values[index].queue.isEmpty { clients.values[index].bytes = 0 }
        account(clients.values[index].bytes - before, process)
        return result
    }

    private mutating func account(_ change: Int, _ process: ProcessID) {
        guard change != 0 else { return }
        let sum = bytes[process, default: 0] + change
        bytes[process] = sum > 0 ? sum : nil
    }

    private mutating func enter(_ subjects: Subjects, for client: String) -> Subjects {
        var new = Subjects()
        for name in subjects.names {
            if names[name] == nil { new.names.insert(name) }
            names[name, default: []].append(client)
        }
        for prefix in subjects.prefixes {
            let others = prefixes[prefix]
            if others == nil { new.prefixes.insert(prefix) }
            prefixes[prefix] = (others ?? []) + [client]
        }
        return new
    }

    private mutating func leave(_ subjects: Subjects, for client: String) -> Subjects {
        var old = Subjects()
        for name in subjects.names {
            guard var rest = names.removeValue(forKey: name) else { continue }
            rest.removeAll { $0 == client }
            if rest.isEmpty { old.names.insert(name) } else { names[name] = rest }
        }
        for prefix in subjects.prefixes {
            guard var rest = prefixes[prefix] else { continue }
            rest.removeAll { $0 == client }
            if rest.isEmpty { old.prefixes.insert(prefix) }
            prefixes[prefix] = rest.isEmpty ? nil : rest
        }
        return old
    }
}
