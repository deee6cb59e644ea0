// SPDX-License-Identifier: Apache-2.0

package import NotifyNames

/// What a source reports.
package enum SourceReport: Sendable {
    /// Whether it reports anything from now on; first it reports how things are.
    case condition(SourceCondition)
    /// What has become of names.
    case found([EventChange])
    /// What decides about the states of programs. It replaces the source's last one; `count` is how many facts it stands for.
    case fact(Fact, count: UInt64 = 1)

    package static let live = SourceReport.condition(.live)
    package static func off(_ reason: String) -> SourceReport { .condition(.off(reason)) }
}

package struct EventChange: Equatable, Sendable {
    package let name: NotifyName
    /// The state from now on; nil leaves it unchanged.
    package let state: UInt64?
    /// Whether it is posted, or has only become known.
    package let isPosted: Bool

    package init(_ name: NotifyName, state: UInt64? = nil, isPosted: Bool = true) {
        self.name = name
        self.state = state
        self.isPosted = isPosted
    }
}

/// Which sources of events are active, and for whom: they start when one of their names is first wanted, and stop some
/// time after it no longer is. A value: it takes events, and returns effects.
package struct EventTable {
    package enum Input: Sendable {
        /// A name is wanted, or no longer is.
        case wanted(NotifyName, Bool)
        /// The state of a name is requested; ends in `answer`.
        case asked(NotifyName, UInt64)
        case reported(String, SourceReport)
        case alarm
    }

    package enum Effect: Equatable, Sendable {
        case start(source: String, wanted: Set<NotifyName>)
        /// The wanted names of an active source have changed.
        case change(source: String, wanted: Set<NotifyName>)
        case stop(source: String)
        /// nil: nothing is known about it.
        case set(NotifyName, UInt64?)
        /// - Parameter isAlias: whether it is only for those that observe this very name.
        case post(NotifyName, isAlias: Bool)
        /// The state is known now, or never will be.
        case answer(UInt64)
        case alarm(at: Int64)
    }

    /// The entry for a name in Status.
    package struct Entry: Equatable, Sendable {
        package let name: NotifyName
        package let isLive: Bool
        package let reason: String
        package let posts: UInt64
        /// Of the last post, in seconds since 1970.
        package let last: UInt64
    }

    private struct SourceState {
        var wanted: Set<NotifyName> = []
        /// Until when names count as wanted because their state was requested.
        var asked: [NotifyName: Int64] = [:]
        var isRunning = false
        /// Why it is not live; nil if it is.
        var reason: String? = EventTable.silence
        /// Whether it has reported anything since it was started.
        var isSettled = false
        /// When it is to end.
        var rest: Int64?
        /// The pending requests, and their time limits; the oldest, which is the first to time out, comes first.
        var questions: [(number: UInt64, deadline: Int64)] = []

        var needed: Set<NotifyName> { wanted.union(asked.keys) }
    }

    private struct Posts {
        var count: UInt64 = 0
        var last: UInt64 = 0
    }

    /// How long a source continues without interest, and how long a request counts as interest, in nanoseconds.
    package static let lingering: Int64 = 10_000_000_000
    /// How long a request waits for the first report of a source.
    package static let timeLimit: Int64 = 1_000_000_000

    private static let resting = "idle until needed"
    private static let silence = "has not reported anything yet"

    /// By the name that it posts; several may serve one.
    private let sources: [NotifyName: [String]]
    private let aliases: [NotifyName: [SystemEvent]]
    private var states: [String: SourceState] = [:]
    private var posts: [NotifyName: Posts] = [:]
    private var effects: [Effect] = []
    private var now: Int64 = 0

    /// - Parameter names: which sources serve which names.
    package init(_ names: [NotifyName: [String]], aliases: [NotifyName: [SystemEvent]]) {
        sources = names
        self.aliases = aliases
        for source in Set(names.values.joined()) {
            states[source] = SourceState()
            states[source]?.reason = EventTable.resting
        }
    }

    package var names: Set<NotifyName> { Set(sources.keys) }

    /// A name was posted.
    package mutating func hasPosted(_ name: NotifyName, wallClock: UInt64) {
        posts[name, default: Posts()].count += 1
        posts[name]?.last = wallClock
    }

    /// What is known about each name, sorted.
    package var entries: [Entry] {
        sources.keys.sorted { $0.string < $1.string }.map { name in
            let reasons = (sources[name] ?? []).compactMap { states[$0]?.reason }
            let posts = posts[name] ?? Posts()
            return Entry(
                name: name,
                isLive: reasons.isEmpty,
                reason: reasons.first ?? "",
                posts: posts.count,
                last: posts.last
            )
        }
    }

    /// - Parameter now: nanoseconds of the monotonic clock.
    package mutating func handle(_ input: Input, at now: Int64) -> [Effect] {
        self.now = now
        switch input {
        case .wanted(let name, let isWanted):
            for source in sources[name] ?? [] {
                change(source) { state in
                    if isWanted { state.wanted.insert(name) } else { state.wanted.remove(name) }
                }
            }
        case .asked(let name, let question):
            guard let all = sources[name], let source = all.first else {
                effects.append(.answer(question))
                break
            }
            for source in all { change(source) { $0.asked[name] = now + EventTable.lingering } }
            if states[source]?.isSettled == true {
                effects.append(.answer(question))
            } else {
                states[source]?.questions.append((question, now + EventTable.timeLimit))
            }
        case .reported(let source, let report): if states[source]?.isRunning == true { take(report, from: source) }
        case .alarm: expire()
        }
        if let next = nextAlarm { effects.append(.alarm(at: next)) }
        defer { effects = [] }
        return effects
    }

    /// Changes the interest in a source, and has it start, adapt or rest accordingly.
    private mutating func change(_ source: String, _ change: (inout SourceState) -> Void) {
        guard var state = states[source] else { return assertionFailure("No name has the source \(source).") }
        let before = state.needed
        change(&state)
        let after = state.needed
        defer { states[source] = state }
        if after.isEmpty {
            if state.isRunning, state.rest == nil { state.rest = now + EventTable.lingering }
            return
        }
        state.rest = nil
        if !state.isRunning {
            (state.isRunning, state.isSettled, state.reason) = (true, false, EventTable.silence)
            effects.append(.start(source: source, wanted: after))
        } else if before != after {
            effects.append(.change(source: source, wanted: after))
        }
    }

    private mutating func take(_ report: SourceReport, from source: String) {
        switch report {
        case .fact: return
        case .found(let changes):
            for change in changes { take(change) }
            return
        case .condition(.live): states[source]?.reason = nil
        case .condition(.off(let reason)):
            states[source]?.reason = reason
            for (name, all) in sources where all.contains(source) { set(name, nil) }
        }
        states[source]?.isSettled = true
        for question in states[source]?.questions ?? [] { effects.append(.answer(question.number)) }
        states[source]?.questions = []
    }

    private mutating func take(_ change: EventChange) {
        let others = aliases[change.name] ?? []
        if let state = change.state {
            set(change.name, state)
            for alias in others { set(alias.name, state) }
        }
        guard change.isPosted else { return }
        effects.append(.post(change.name, isAlias: false))
        for alias in others where alias.edge == nil || alias.edge == change.state {
            effects.append(.post(alias.name, isAlias: true))
        }
    }

    private mutating func set(_ name: NotifyName, _ state: UInt64?) { effects.append(.set(name, state)) }

    private mutating func expire() {
        for (source, state) in states {
            let late = state.questions.prefix { $0.deadline <= now }
            for question in late { effects.append(.answer(question.number)) }
            states[source]?.questions.removeFirst(late.count)
            let over = state.asked.filter { $0.value <= now }.map(\.key)
            if !over.isEmpty { change(source) { state in for name in over { state.asked[name] = nil } } }
            guard let rest = states[source]?.rest, rest <= now else { continue }
            states[source] = SourceState()
            states[source]?.reason = EventTable.resting
            effects.append(.stop(source: source))
            for (name, all) in sources where all.contains(source) { set(name, nil) }
        }
    }

    private var nextAlarm: Int64? {
        states.values.flatMap { state in
            [state.rest, state.questions.first?.deadline].compactMap { $0 } + state.asked.values
        }.min()
    }
}
