// SPDX-License-Identifier: Apache-2.0

import CForkGuard
import Glibc
package import NotifyCore
import Synchronization

/// The engine of notify(3): tokens, the names for which they are registered, and one center for all of them.
///
/// Posts of this process notify its own tokens on the posting thread, before the post returns: a program that posts a
/// name and then checks it must see that. When the bus delivers such a post, it is skipped.
///
/// `self.` names also go through the center, so that its observers hear them; in the child of fork(2), which has no
/// threads of the center, the engine notifies their tokens itself.
package final class TokenEngine: Sendable {
    /// How many names may be idle, that is, still observed on the bus after their last token was cancelled: a program
    /// that keeps registering and cancelling the same names need not wait for the bus each time.
    private static let idleLimit = 64
    /// How long a name may be idle, in milliseconds. A post ends that immediately.
    private static let idleTime: Int64 = 1_000

    /// With how many tokens of a name they are notified by the thread that reads, if another is in a callback: a descriptor
    /// takes 3 µs.
    static let shortCount = 16

    struct State {
        var center: NotifyCenter
        var deferredWork: DeferredWork
        var records: [NotifyName: SharedObservation] = [:]
        var registrations: [Int32: Registration] = [:]
        /// Keyed by the reading end. If the program has closed one itself, a newer pipe may have taken its number.
        var pipes: [Int32: TokenPipe] = [:]
        /// Tokens that monitor a file.
        var files: Set<Int32> = []
        /// The longest idle first; those used since then are skipped.
        var idle: [(record: SharedObservation, since: MonotonicTime)] = []
        var recentNames = RecentNames()
        /// Tokens whose file changed while this program was suspended.
        var changedFiles: Set<Int32> = []
        /// Whether the center reports its posts, and changes of this program's state.
        var hearsOwnPosts = false
        var followsLifecycle = false
        var isDisabled = false
        /// Whether this is the child of a process that had registrations or a connection.
        var isChild = false
        /// What this process has inherited from its parent and must not touch.
        var inherited: Inherited?
    }

    /// The engine of this process, on the bus that ``BusChoice`` names.
    package static var shared: TokenEngine { existing?.takeUnretainedValue() ?? makeShared() }

    let table = CheckTable()
    let state: Monitor<State>
    /// Set in the child of fork(2), where nothing else can be done immediately.
    let wasForked = Atomic(false)

    /// Creates a separate engine; for tests. It lives until it is closed.
    package init(center: NotifyCenter) {
        state = Monitor(State(center: center, deferredWork: DeferredWork()))
    }

    // MARK: - Names

    /// Runs `body` with the lock held, on a state that belongs to this process.
    func withState<Result>(_ body: (inout State) throws(NotifyStatus) -> Result) throws(NotifyStatus) -> Result {
        try state.withLock { state throws(NotifyStatus) in
            if wasForked.load(ordering: .relaxed) { beginInChild(&state) }
            return try body(&state)
        }
    }

    /// - Throws: `disabled` if the bus must not be used.
    static func requireBus(_ state: State) throws(NotifyStatus) {
        if state.isDisabled || fork_is_cut_off() { throw .disabled }
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
                try center.postOnceConnected(name)
            } catch {
                throw NotifyStatus(error)
            }
        }
    }

    /// How a post reaches tokens.
    private enum Route {
        case center(NotifyCenter)
        case own(SharedObservation?)
    }

    /// Notifies every token of a name that this process has posted it. Runs on the posting thread.
    private func deliverOwn(_ name: NotifyName) {
        let record: SharedObservation? = state.withLock { state in
            guard let record = state.records[name], !record.isEmpty else { return nil }
            // The bus may have it before we know.
            switch record.phase {
            case .live, .waiting: return record
            case .opening, .failed, .gone: return nil
            }
        }
        guard let record else { return }
        // In the background nothing is heard. Posts made while the program is suspended are reported by the agent
        // afterwards.
        if record.needsBus, center.lifecycle.state != .foreground { return }
        record.posts.pointee.add(1, ordering: .acquiringAndReleasing)
        let registrations = state.withLock { _ in record.registrations }
        for registration in registrations { registration?.deliver() }
    }

    /// Makes the center report its posts, unless it already does.
    func hearOwnPosts(of center: NotifyCenter) {
        let isNew = state.withLock { state in
            defer { state.hearsOwnPosts = true }
            return !state.hearsOwnPosts
        }
        if isNew { center.setLocalEcho { self.deliverOwn($0) } }
    }

    var center: NotifyCenter { state.withLock { $0.center } }

    /// Notifies every token of a name that it was posted. Runs on the center's thread, except for `self.`
    /// names in a child.
    func deliver(_ record: SharedObservation) {
        record.posts.pointee.add(1, ordering: .acquiringAndReleasing)
        let (registrations, isIdle) = state.withLock { state in
            (record.registrations, record.isEmpty && TokenEngine.drop(record, &state))
        }
        if isIdle { close(record) }
        for registration in registrations { registration?.deliver() }
    }

    // MARK: - Names without registrations

    /// Removes an idle name from the table, so that it can be closed.
    static func drop(_ record: SharedObservation, _ state: inout State) -> Bool {
        guard record.idleSince != nil, case .live = record.phase else { return false }
        record.phase = .gone
        record.idleSince = nil
        if state.records[record.name] === record { state.records[record.name] = nil }
        return true
    }

    /// Ends the observation of a name that is no longer in the table.
    func close(_ record: SharedObservation) {
        let observation = state.withLock { state in
            defer { record.observation = nil }
            return record.observation
        }
        // If the wait would be circular, this goes on without it: the callback does not run again.
        try? observation?.cancelAndWait(timeout: nil)
        // Afterwards, as its callback may have counted until now.
        state.withLock { _ in table.takeBack(record.posts) }
    }

    /// Called when the last token of a name has been cancelled; for one that was still opening, once it is open.
    ///
    /// - Returns: names to close.
    func retire(_ record: SharedObservation, _ state: inout State) -> [SharedObservation] {
        switch record.phase {
        case .opening, .gone: return []
        case .failed: return [record]
        case .waiting:
            record.phase = .gone
            state.records[record.name] = nil
            return [record]
        case .live: record.idleSince = .now
        }
        if !record.needsBus || record.hasState { return TokenEngine.drop(record, &state) ? [record] : [] }
        state.idle.append((record, record.idleSince ?? .now))
        if state.idle.count == 1 {
            state.deferredWork.sweep(at: .now + TokenEngine.idleTime) { self.sweepIdleNames() }
        }
        let surplus = state.idle.count - TokenEngine.idleLimit
        return surplus > 0 ? TokenEngine.takeIdle(count: surplus, &state) : []
    }

    private static func takeIdle(count: Int, _ state: inout State) -> [SharedObservation] {
        let entries = state.idle.prefix(count)
        state.idle.removeFirst(count)
        return entries.filter { $0.record.idleSince == $0.since && drop($0.record, &state) }.map(\.record)
    }

    /// - Returns: when to do this again.
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

/// Names that were recently posted or registered, so that they need not be created from bytes again each time.
struct RecentNames {
    // 64: as many as the six bits of the index can address.
    private var names: [NotifyName?] = Array(repeating: nil, count: 64)

    /// - Throws: `invalidName` if it is not a valid name.
    mutating func find(_ name: UnsafePointer<CChar>?) throws(NotifyStatus) -> NotifyName {
        guard let name else { throw .invalidName }
        let bytes = UnsafeRawBufferPointer(start: name, count: strnlen(name, NotifyName.maximumLength + 1))
        // The end of a name distinguishes it from similar ones.
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
    /// Cancels everything, so that the engine can be released.
    package func close() {
        let records = state.withLock { state in
            defer {
                state.records = [:]
                state.registrations = [:]
            }
            // A record and its registrations retain each other.
            for registration in state.registrations.values { registration.name.remove(registration) }
            return Array(state.records.values)
        }
        center.setLocalEcho(nil)
        for record in records { close(record) }
    }

    /// Whether no deferred work is left or under way. Then every name that is observed on the bus has a token.
    package var isAtRest: Bool { state.withLock { $0.deferredWork }.isAtRest }
}

extension TokenEngine {
    /// Disables everything that needs the bus, or enables it again.
    package func setDisabled(_ isDisabled: Bool) {
        try? withState { state in state.isDisabled = isDisabled }
    }
}

extension TokenEngine {
    /// The options of `notify_set_options`: 0x08000000 disables, 0x04000000 enables.
    package func setOptions(_ options: UInt32) {
        if options & 0x0800_0000 != 0 { setDisabled(true) } else if options & 0x0400_0000 != 0 { setDisabled(false) }
    }
}

/// The bus on which Darwin's names travel.
///
/// On Darwin names are system-wide. Here the default is the user's session bus, where a desktop's programs meet and
/// other users' are not heard. For names that all users share, set `NOTIFYBUS_ADDRESS=system`.
package enum BusChoice {
    /// The center shared by everything with a Darwin name, on the bus that `NOTIFYBUS_ADDRESS` names; by default the
    /// session bus.
    package static let center: NotifyCenter =
        switch NotifyCenter.Bus.inEnvironment?.kind {
        case .session, nil: .session
        case .system: .system
        // Inside the process, for tests: no daemon is needed.
        case .address("process:"): NotifyCenter(bus: .inProcess())
        case .address(let address): NotifyCenter(bus: .address(address))
        }
}
