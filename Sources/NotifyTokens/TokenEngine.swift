// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
package import NotifyCore
import Synchronization

/// What is behind notify(3): tokens, the names that they are registered for, and one center for all of them.
///
/// What this process posts itself is told to its tokens by the thread that posts, before the post returns: a program that
/// posts a name and then checks it must see that. When the bus brings such a post back it is passed over.
///
/// `self.` names go through the center as well, so that its observers hear them; in the child of fork(2), which has no
/// threads of the center, the engine tells their tokens itself.
package final class TokenEngine: Sendable {
    /// How many names may be idle, that is, observed on the bus although their last token was cancelled: a program that
    /// registers and cancels the same names again and again need not wait for the bus each time.
    private static let idleLimit = 64
    /// How long a name may be idle, in milliseconds. A post ends it at once.
    private static let idleTime: Int64 = 1_000

    struct State {
        var center: NotifyCenter
        var keeper: Keeper
        var records: [NotifyName: NameRecord] = [:]
        var registrations: [Int32: Registration] = [:]
        /// By the end that the program reads from.
        var pipes: [Int32: (pipe: TokenPipe, users: Int)] = [:]
        var files: [Int32: MonitoredFile] = [:]
        /// The longest idle first; those that have been used since are passed over.
        var idle: [(record: NameRecord, since: MonotonicTime)] = []
        var recentNames = RecentNames()
        /// Tokens whose file has changed while this program was suspended.
        var changedFiles: Set<Int32> = []
        /// Whether the center tells of its posts, and of changes of this program's state.
        var hearsOwnPosts = false
        var followsLifecycle = false
        var isDisabled = false
        /// Whether this is the child of a process that had registrations or a connection.
        var isChild = false
        /// What this process has from its parent and must not touch.
        var inherited: Inherited?
    }

    /// The one of this process, on the bus that ``BusChoice`` names.
    package static let shared: TokenEngine = {
        let engine = TokenEngine(center: BusChoice.center)
        engine.surviveForks()
        return engine
    }()

    let table = CheckTable()
    let state: Monitor<State>
    /// Set in the child of fork(2), where nothing else can be done at once.
    let wasForked = Atomic(false)

    /// Makes an engine of its own; for tests. It lives until it is closed.
    package init(center: NotifyCenter) {
        state = Monitor(State(center: center, keeper: Keeper()))
    }

    // MARK: - Names

    /// Runs `body` with the lock held, in a state that belongs to this process.
    func withState<Result>(_ body: (inout State) throws(NotifyStatus) -> Result) throws(NotifyStatus) -> Result {
        try state.withLock { state throws(NotifyStatus) in
            if wasForked.load(ordering: .relaxed) { beginInChild(&state) }
            return try body(&state)
        }
    }

    /// - Throws: `disabled` where the bus must not be used.
    static func requireBus(_ state: State) throws(NotifyStatus) {
        if state.isDisabled || linux_is_cut_off() { throw .disabled }
    }

    /// Posts a name.
    package func post(_ text: UnsafePointer<CChar>?) throws(NotifyStatus) {
        let (name, route) = try withState { state throws(NotifyStatus) in
            let name = try state.recentNames.find(text)
            if !name.staysInProcess {
                try TokenEngine.requireBus(state)
            } else if state.isChild {
                return (name, Route.own(state.records[name]))
            }
            return (name, Route.center(state.center))
        }
        switch route {
        case .own(let record): if let record { deliver(record) }
        case .center(let center):
            do throws(NotifyBusError) {
                try center.post(name)
            } catch {
                throw NotifyStatus(error)
            }
        }
    }

    /// How a post reaches tokens.
    private enum Route {
        case center(NotifyCenter)
        case own(NameRecord?)
    }

    /// Tells every token of a name that this process has posted it. Runs on the thread that posts.
    private func deliverOwn(_ name: NotifyName) {
        let record: NameRecord? = state.withLock { state in
            guard let record = state.records[name], !record.isEmpty, case .live = record.phase else { return nil }
            return record
        }
        guard let record else { return }
        // In the background nothing is heard. What is posted while the program is suspended the agent tells afterwards.
        if record.needsBus, center.lifecycle.state != .foreground { return }
        record.posts.pointee.add(1, ordering: .acquiringAndReleasing)
        let registrations = state.withLock { _ in record.registrations }
        for registration in registrations { registration?.deliver() }
    }

    /// Has the center tell of its posts, unless it does.
    func hearOwnPosts(of center: NotifyCenter) {
        let isNew = state.withLock { state in
            defer { state.hearsOwnPosts = true }
            return !state.hearsOwnPosts
        }
        if isNew { center.setPostWitness { self.deliverOwn($0) } }
    }

    var center: NotifyCenter { state.withLock { $0.center } }

    /// Tells every token of a name that somebody has posted it. Runs on the center's thread, but for `self.` names in a
    /// child.
    func deliver(_ record: NameRecord) {
        record.posts.pointee.add(1, ordering: .acquiringAndReleasing)
        let (registrations, isIdle) = state.withLock { state in
            (record.registrations, record.isEmpty && TokenEngine.drop(record, &state))
        }
        if isIdle { close(record) }
        for registration in registrations { registration?.deliver() }
    }

    // MARK: - Names that nobody has registered for any more

    /// Takes an idle name out of the table, so that it can be closed.
    static func drop(_ record: NameRecord, _ state: inout State) -> Bool {
        guard record.idleSince != nil, case .live = record.phase else { return false }
        record.phase = .gone
        record.idleSince = nil
        if state.records[record.name] === record { state.records[record.name] = nil }
        return true
    }

    /// Ends the observation of a name that stands in the table no more.
    func close(_ record: NameRecord) {
        let observation = state.withLock { state in
            defer { record.observation = nil }
            return record.observation
        }
        observation?.cancel()
        // Afterwards: until now its callback may have counted.
        state.withLock { _ in table.takeBack(record.posts) }
    }

    /// Called when the last token of a name has been cancelled.
    ///
    /// - Returns: names to close.
    func retire(_ record: NameRecord, _ state: inout State) -> [NameRecord] {
        switch record.phase {
        case .opening, .gone: return []
        case .failed: return [record]
        case .live: record.idleSince = .now
        }
        if !record.needsBus || record.hasState { return TokenEngine.drop(record, &state) ? [record] : [] }
        state.idle.append((record, record.idleSince ?? .now))
        if state.idle.count == 1 {
            state.keeper.sweep(at: .now + TokenEngine.idleTime) { self.sweepIdleNames() }
        }
        let surplus = state.idle.count - TokenEngine.idleLimit
        return surplus > 0 ? TokenEngine.takeIdle(count: surplus, &state) : []
    }

    private static func takeIdle(count: Int, _ state: inout State) -> [NameRecord] {
        let entries = state.idle.prefix(count)
        state.idle.removeFirst(count)
        return entries.filter { $0.record.idleSince == $0.since && drop($0.record, &state) }.map(\.record)
    }

    /// - Returns: when to do it again.
    func sweepIdleNames() -> MonotonicTime? {
        let (records, next) = state.withLock { state in
            let now = MonotonicTime.now
            let count = state.idle.prefix { $0.since + TokenEngine.idleTime <= now }.count
            let records = TokenEngine.takeIdle(count: count, &state)
            return (records, state.idle.first.map { $0.since + TokenEngine.idleTime })
        }
        for record in records { close(record) }
        return next
    }
}

/// Names that were posted or registered lately, so that a name is not made from its bytes again each time.
struct RecentNames {
    // 64, as many as the six bits that a name is found by can tell apart.
    private var names: [NotifyName?] = Array(repeating: nil, count: 64)

    /// - Throws: `invalidName` for what is not a name.
    mutating func find(_ name: UnsafePointer<CChar>?) throws(NotifyStatus) -> NotifyName {
        guard let name else { throw .invalidName }
        let bytes = UnsafeRawBufferPointer(start: name, count: strnlen(name, NotifyName.maximumLength + 1))
        // The end of a name tells it from its neighbours.
        let end = bytes.count >= 8 ? bytes.loadUnaligned(fromByteOffset: bytes.count - 8, as: UInt64.self) : 0
        let place = Int(((end ^ UInt64(bytes.count)) &* 0x9e37_79b9_7f4a_7c15) >> 58)
        if let known = names[place], known.hasBytes(bytes) { return known }
        do throws(NotifyBusError) {
            let fresh = try NotifyName(utf8: bytes)
            names[place] = fresh
            return fresh
        } catch {
            throw .invalidName
        }
    }
}

// For tests.
extension TokenEngine {
    /// Cancels everything, so that the engine can go.
    package func close() {
        let records = state.withLock { state in
            defer {
                state.records = [:]
                state.registrations = [:]
            }
            return Array(state.records.values)
        }
        center.setPostWitness(nil)
        for record in records { close(record) }
    }

    /// How many names are observed on the bus without a token.
    package var idleNameCount: Int { state.withLock { $0.records.values.filter { $0.idleSince != nil }.count } }

    /// How many tokens find place before the table grows to the double size, twice over.
    package var tokenTableSize: Int { table.size }
}
