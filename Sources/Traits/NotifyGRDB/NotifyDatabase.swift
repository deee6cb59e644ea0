// SPDX-License-Identifier: Apache-2.0

#if GRDB
    public import GRDB
    public import NotifyBus
    import Synchronization

    #if ServiceLifecycle
        public import ServiceLifecycle
    #endif

    /// Posts a name after each commit to a database, and has the observations of this process look again when another process
    /// posts it.
    ///
    /// ```swift
    /// let shared = try NotifyDatabase(pool, name: "com.example.notes.changed")
    /// async let refreshing: Void = shared.run()
    /// for try await notes in ValueObservation.tracking(Note.fetchAll).values(in: pool) { show(notes) }
    /// ```
    ///
    /// As long as it lives, each transaction that has changed, added or deleted rows posts the name once it is committed; one
    /// that only reads or is rolled back posts nothing. Posting never waits, so the writer's queue doesn't either.
    ///
    /// It also posts once at its beginning: a process that was killed may have committed without posting, and does so when it
    /// is started again.
    ///
    /// All processes that write use it with the same name. With the trait `ServiceLifecycle` too, it is a `Service`.
    public final class NotifyDatabase: Sendable {
        private let writer: any DatabaseWriter
        private let name: NotifyName
        private let center: NotifyCenter
        private let poster: CommitPoster
        private let runCount = Atomic(0)
        /// The runs that wait for the refresh that is due, by number, and how to tell them that it has failed; none if no
        /// refresh is due.
        private let waiting = Mutex<[Int: @Sendable (any Error) -> Void]>([:])

        /// Begins to post. Waits for its turn on the writer's queue.
        ///
        /// - Parameters:
        ///   - writer: the database: a pool or a queue.
        ///   - name: what is posted. Every process that opens this file uses the same.
        ///   - center: the center that posts and observes.
        /// - Throws: what `NotifyCenter.post(_:)` throws.
        public init(_ writer: any DatabaseWriter, name: NotifyName, center: NotifyCenter = .session)
            throws(NotifyBusError)
        {
            (self.writer, self.name, self.center) = (writer, name, center)
            poster = CommitPoster { try? center.post(name) }
            writer.unsafeReentrantWrite { [poster] database in
                poster.begin(database)
                database.add(transactionObserver: poster)
            }
            try center.post(name)
        }

        /// Has the observations of this process look again whenever another posts the name, until the task is cancelled or the
        /// center is closed; as a service, until the graceful shutdown.
        ///
        /// They also look again at its beginning, when the bus is back, and when the program comes to the foreground.
        ///
        /// Several may run at once. One look at the database serves all that wait for it, and if it fails, all of them throw.
        ///
        /// - Throws: what `NotifyCenter.addObserver(for:_:ignoringOwnPosts:using:)` throws, except `cancelled`, and what the
        ///   database throws.
        public func run() async throws {
            #if ServiceLifecycle
                try await cancelWhenGracefulShutdown { try await self.refreshWhenTold() }
            #else
                try await refreshWhenTold()
            #endif
        }

        private func refreshWhenTold() async throws {
            let (failures, failure) = AsyncThrowingStream.makeStream(of: Never.self)
            let number = runCount.add(1, ordering: .relaxed).newValue
            do {
                try await center.hintAtLooking(for: .name(name), ignoringOwnPosts: true) { [self] in
                    refresh(for: number) { failure.finish(throwing: $0) }
                } closed: {
                    failure.finish()
                } during: {
                    for try await _ in failures {}
                }
            } catch is CancellationError {}
        }

        /// Straight from the center's thread to the writer's queue: a task in between would take as long as the post itself.
        private func refresh(for run: Int, failed: @escaping @Sendable (any Error) -> Void) {
            // One that has not begun sees what this one would, and if it fails, this run has failed, too.
            let isDue = waiting.withLock { waiting in
                defer { waiting[run] = failed }
                return !waiting.isEmpty
            }
            if isDue { return }
            writer.asyncWriteWithoutTransaction { [self] database in
                let runs = waiting.withLock { waiting in
                    defer { waiting = [:] }
                    return waiting
                }
                do {
                    // Without a statement in it, it takes no lock of the file, and waits for no other process.
                    try database.inTransaction(.deferred) {
                        try database.notifyChanges(in: .fullDatabase)
                        return .commit
                    }
                } catch {
                    for failed in runs.values { failed(error) }
                }
            }
        }
    }

    #if ServiceLifecycle
        extension NotifyDatabase: Service {}
    #endif

    /// Posts after a commit that has changed something. Everything is called on the writer's queue.
    private final class CommitPoster: TransactionObserver, Sendable {
        /// How many rows had been changed when the last transaction ended. SQLite doesn't count what a failed statement did.
        private let seen = Atomic(0)
        private let post: @Sendable () -> Void

        init(_ post: @escaping @Sendable () -> Void) { self.post = post }

        func begin(_ database: Database) { seen.store(database.totalChangesCount, ordering: .relaxed) }

        /// Single changes don't matter: being told of them would make each more expensive.
        func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool { false }

        func databaseDidChange(with event: DatabaseEvent) {}

        func databaseDidCommit(_ database: Database) {
            let count = database.totalChangesCount
            if seen.exchange(count, ordering: .relaxed) != count { post() }
        }

        func databaseDidRollback(_ database: Database) { begin(database) }
    }
#endif
