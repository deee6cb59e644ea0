// SPDX-License-Identifier: Apache-2.0

#if Configuration
    public import Configuration
    public import NotifyBus
    import Synchronization
    public import SystemPackage

    #if ServiceLifecycle
        public import ServiceLifecycle
    #endif

    /// Configuration from a file that is read again when a name is posted. Nothing polls.
    ///
    /// ```swift
    /// let provider = try await NotifyFileProvider<JSONSnapshot>(
    ///     filePath: "/etc/example.json",
    ///     reloadingFor: "com.example.config.changed"
    /// )
    /// let config = ConfigReader(provider: provider)
    /// async let reloading: Void = provider.run()
    /// ```
    ///
    /// While ``run()`` runs, the file is read at the first post, and after that at most once in an interval, so that the last
    /// file counts however many posts there are. It is also read when the bus is back and when the program comes to the
    /// foreground, since posts may have been missed. A file that can't be read or parsed changes nothing.
    ///
    /// With the trait `ServiceLifecycle` too, it is a `Service`.
    public final class NotifyFileProvider<Snapshot: FileConfigSnapshot>: ConfigProvider {
        private struct State {
            var snapshot: any ConfigSnapshot
            /// Called with the snapshots before and after, one call after the other.
            var watchers: [Int: (any ConfigSnapshot, any ConfigSnapshot) -> Void] = [:]
            var lastWatcher = 0
        }

        private let state: Mutex<State>
        private let read: @Sendable () async throws -> any ConfigSnapshot
        private let center: NotifyCenter
        private let name: NotifyName
        private let interval: Duration
        private let reloadFailed: @Sendable (any Error) -> Void

        /// Reads the file.
        ///
        /// - Parameters:
        ///   - snapshotType: what the file contains.
        ///   - parsingOptions: how it is parsed.
        ///   - filePath: the file.
        ///   - allowMissing: whether a file that does not exist counts as an empty one.
        ///   - name: what is posted after the file was changed.
        ///   - center: the center that observes.
        ///   - interval: how soon it may be read again.
        ///   - reloadFailed: is told why the file could not be read again. The old values stay.
        /// - Throws: what `FileProvider` throws if the file can't be read or parsed.
        public init(
            snapshotType: Snapshot.Type = Snapshot.self,
            parsingOptions: Snapshot.ParsingOptions = .default,
            filePath: FilePath,
            allowMissing: Bool = false,
            reloadingFor name: NotifyName,
            center: NotifyCenter = .session,
            atMostEvery interval: Duration = .seconds(1),
            reloadFailed: @escaping @Sendable (any Error) -> Void = { _ in }
        ) async throws {
            read = {
                try await FileProvider<Snapshot>(
                    parsingOptions: parsingOptions,
                    filePath: filePath,
                    allowMissing: allowMissing
                ).snapshot()
            }
            state = Mutex(State(snapshot: try await read()))
            (self.center, self.name, self.interval, self.reloadFailed) = (center, name, interval, reloadFailed)
        }

        /// Reads the file when it is told to, until the task is cancelled or the center is closed; as a service, until the
        /// graceful shutdown.
        ///
        /// Reads it once more at its beginning, as it may have changed before the first post is heard.
        ///
        /// - Throws: what `NotifyCenter.addObserver(for:_:ignoringOwnPosts:using:)` throws, except `cancelled`.
        public func run() async throws {
            #if ServiceLifecycle
                try await cancelWhenGracefulShutdown { try await self.reloadWhenTold() }
            #else
                try await reloadWhenTold()
            #endif
        }

        private func reloadWhenTold() async throws {
            try await center.lookAgain(for: .name(name)) {
                do {
                    let snapshot = try await read()
                    state.withLock { state in
                        for watcher in state.watchers.values { watcher(state.snapshot, snapshot) }
                        state.snapshot = snapshot
                    }
                } catch {
                    if !Task.isCancelled { reloadFailed(error) }
                }
                // Ended by cancellation; then there is no other look.
                try? await Task.sleep(for: interval)
            }
        }

        /// The name of the provider, for access reports.
        public var providerName: String { "NotifyFileProvider<\(Snapshot.self)>" }

        /// The value in the file as it was last read.
        public func value(forKey key: AbsoluteConfigKey, type: ConfigType) throws -> LookupResult {
            try snapshot().value(forKey: key, type: type)
        }

        /// The same: the file is read when it has changed, not when it is asked.
        public func fetchValue(forKey key: AbsoluteConfigKey, type: ConfigType) async throws -> LookupResult {
            try value(forKey: key, type: type)
        }

        /// The file as it was last read.
        public func snapshot() -> any ConfigSnapshot { state.withLock { $0.snapshot } }

        /// The value now, and whenever a file was read in which it is another.
        public func watchValue<Return: ~Copyable>(
            forKey key: AbsoluteConfigKey,
            type: ConfigType,
            updatesHandler: (ConfigUpdatesAsyncSequence<Result<LookupResult, any Error>, Never>) async throws -> Return
        ) async throws -> Return {
            try await watch(
                { snapshot in Result { try snapshot.value(forKey: key, type: type) } },
                unless: { old, new in
                    switch (old, new) {
                    case (.success(let old), .success(let new)): old == new
                    case (.failure, .failure): true
                    default: false
                    }
                },
                updatesHandler
            )
        }

        /// The file as it was last read, and whenever it was read again.
        public func watchSnapshot<Return: ~Copyable>(
            updatesHandler: (ConfigUpdatesAsyncSequence<any ConfigSnapshot, Never>) async throws -> Return
        ) async throws -> Return {
            try await watch({ $0 }, unless: { _, _ in false }, updatesHandler)
        }

        private func watch<Value: Sendable, Return: ~Copyable>(
            _ value: @escaping @Sendable (any ConfigSnapshot) -> Value,
            unless isSame: @escaping @Sendable (Value, Value) -> Bool,
            _ body: (ConfigUpdatesAsyncSequence<Value, Never>) async throws -> Return
        ) async throws -> Return {
            let (stream, continuation) = AsyncStream.makeStream(of: Value.self, bufferingPolicy: .bufferingNewest(1))
            let watcher = state.withLock { state in
                state.lastWatcher += 1
                state.watchers[state.lastWatcher] = { old, new in
                    let (old, new) = (value(old), value(new))
                    if !isSame(old, new) { continuation.yield(new) }
                }
                continuation.yield(value(state.snapshot))
                return state.lastWatcher
            }
            defer { state.withLock { _ = $0.watchers.removeValue(forKey: watcher) } }
            return try await body(ConfigUpdatesAsyncSequence(stream))
        }
    }

    #if ServiceLifecycle
        extension NotifyFileProvider: Service {}
    #endif
#endif
