// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// A program that posts: its real queue, and a model of the socket, which accepts only so many messages at once.
final class SimulatedPoster {
    /// How many posts are prepared for one write.
    private static let batchSize = 2
    /// For how long the queue may delay the exit, in nanoseconds.
    private static let exitLimit: Int64 = 1_000_000_000

    let number: Int
    /// Nil if it was lost.
    var connection: Int?
    private var queue: PostQueue<Waiting> {
        // The library's queue is generic, and to ask it takes long.
        didSet { (hasNext, waiting) = (queue.hasNext, queue.count) }
    }
    private var promise: QueuePromise
    /// What is being written, and how much of that the socket has accepted.
    private var batch: [Waiting] = []
    private var accepted = 0
    /// When it exits at the latest, once `main` has returned.
    private(set) var deadline: Int64?

    init(number: Int, connection: Int, _ world: World) {
        self.number = number
        self.connection = connection
        let scarcity = world.setting.scarcity
        promise = QueuePromise(scarcity)
        queue = PostQueue(
            world.mutation == .coalescesEarly ? CoalescingQueue(individualLimit: 0, limit: 4) : scarcity.queue()
        )
    }

    init(copying other: SimulatedPoster) {
        number = other.number
        connection = other.connection
        promise = other.promise
        queue = other.queue
        batch = other.batch
        accepted = other.accepted
        deadline = other.deadline
        hasNext = other.hasNext
        waiting = other.waiting
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(connection)
        hasher.combine(promise)
        hasher.combine(queue)
        hasher.combine(batch)
        hasher.combine(accepted)
        hasher.combine(deadline)
    }

    var hasPosts: Bool { hasNext || accepted < batch.count }
    private var hasNext = false
    /// How many posts may yet be routed.
    private(set) var waiting = 0

    func hasRoom(_ world: World) -> Bool {
        guard let connection, let limit = world.setting.scarcity.socket else { return connection != nil }
        return world.bus[connection].outbox.count < limit
    }

    // MARK: - Posting

    /// Returns at once, whatever the bus does.
    func post(_ name: Int, _ world: World) {
        guard deadline == nil else { return }
        if world.bus.isAway { return world.oracle.exceed(.awayPost) }
        let post = Waiting(name: name)
        if !hasPosts, hasRoom(world) { return send(post, world) }
        let outcome = queue.enqueue(post)
        world.note("  poster \(number): \(outcome)")
        if let fault = promise.offered(name, outcome) { world.oracle.fail("the queue of poster \(number) \(fault)") }
        switch outcome {
        case .queued: break
        case .coalesced: world.oracle.exceed(.coalescedPost)
        case .full: world.oracle.exceed(.refusedPost)
        }
    }

    /// Continues with what waits, as far as the socket accepts it.
    func step(_ world: World) {
        if connection == nil { connect(world) }
        guard connection != nil else { return }
        drain(world)
        if deadline != nil, !hasPosts { exit(world) }
    }

    private func drain(_ world: World) {
        while true {
            if accepted == batch.count {
                if !batch.isEmpty { queue.noteWritten() }
                (batch, accepted) = ([], 0)
                while batch.count < SimulatedPoster.batchSize, hasNext, let post = queue.beginNext() {
                    if let fault = promise.taken(post) { world.oracle.fail("the queue of poster \(number) \(fault)") }
                    batch.append(post)
                }
                if batch.isEmpty { return }
            }
            guard hasRoom(world) else { return }
            send(batch[accepted], world)
            accepted += 1
        }
    }

    private func send(_ post: Waiting, _ world: World) {
        guard let connection else { return }
        let isForged = world.setting.reservesNames && post.name == Subject.reserved && number != 0
        world.isWritten(Post(name: post.name, poster: number, connection: connection, isForged: isForged))
    }

    private func connect(_ world: World) {
        connection = world.bus.isAway ? nil : world.bus.connect(.poster(number))
    }

    // MARK: - Losing the connection, and exiting

    /// The bus has closed the connection.
    func lose(_ world: World) {
        connection = nil
        promise.untaken(batch)
        switch world.mutation {
        case .forgetsInFlight: queue.noteWritten()
        case .writesAgainLast:
            queue.noteWritten()
            for post in batch { _ = queue.enqueue(post) }
        default: queue.startAgain()
        }
        (batch, accepted) = ([], 0)
    }

    func beginExit(_ world: World) {
        guard deadline == nil else { return }
        deadline = world.clock + SimulatedPoster.exitLimit
        // It does not wait for a bus that is away.
        if !hasPosts || connection == nil || world.mutation == .exitsAtOnce { exit(world, isLate: connection == nil) }
    }

    func deadlineHasPassed(_ world: World) { exit(world, isLate: true) }

    /// Another program takes its place.
    private func exit(_ world: World, isLate: Bool = false) {
        deadline = nil
        if isLate {
            world.oracle.exceed(.unsentPost, waiting - accepted)
            promise.removeAll()
        } else {
            check(world)
        }
        queue = PostQueue(world.setting.scarcity.queue())
        (batch, accepted) = ([], 0)
        if let connection { world.bus.hangUp(connection) }
        connect(world)
    }

    /// Everything that was accepted has been written.
    func check(_ world: World) {
        guard promise.count + batch.count - accepted > 0 else { return }
        world.oracle.fail("\(promise.count) posts that poster \(number) was to queue were not written")
    }
}

extension World {
    /// A socket has accepted a post.
    func isWritten(_ post: Post) {
        posts.append(post)
        oracle.posted(post)
        bus.write(.post(posts.count - 1, name: post.name, isForged: post.isForged), post.connection)
    }

    /// A poster's connection ends, with what the bus has not read.
    func lose(_ poster: SimulatedPoster) {
        guard let connection = poster.connection else { return }
        let unread = bus[connection].outbox.waiting.count { if case .post = $0 { true } else { false } }
        oracle.tolerate(.connectionLost, unread)
        oracle.posterIsLost(
            posts.indices.filter { posts[$0].connection == connection && posts[$0].name == Subject.owned }
        )
        bus.disconnect(connection)
        poster.lose(self)
    }

    /// The bus cuts off a poster, with what it has not read.
    func cutPoster(_ number: Int) {
        // Some of its posts may be made again.
        guard let connection = posters[number].connection, bus[connection].isOpen, posts.count < 48 else { return }
        lose(posters[number])
    }
}
