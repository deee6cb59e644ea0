// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore
import NotifyNames

/// The part of the agent that knows which names of the machine and the session are wanted, and what is known of them.
final class EventPart {
    /// What the agent must do itself.
    enum Action {
        case set(NotifyName, UInt64?)
        case post(NotifyName, isAlias: Bool)
        /// Somebody has requested the state of a name, which is now known or never will be.
        case answer(UInt64)
        case alarm(at: Int64)
        /// Other names that follow from facts are wanted, or fewer.
        case derivedAreWanted, derivedAreNotWanted
    }

    private var table: EventTable
    private let sources: SourceSet
    /// The groups of names that follow from facts, and from whose.
    private let origins: [String: [String]]
    /// The wanted names of these groups.
    private(set) var derived: [String: Set<NotifyName>] = [:]
    private var lastQuestion: UInt64 = 0
    /// Calls that wait for the state of a name.
    private var questions: [UInt64: (BusCall, NotifyName)] = [:]

    init(_ list: SourceList, _ sources: SourceSet) {
        self.sources = sources
        origins = list.derived
        table = EventTable(list.names, aliases: list.aliases)
    }

    var names: Set<NotifyName> { table.names }
    var entries: [EventTable.Entry] { table.entries }

    /// - Returns: what the agent must do, in order.
    func handle(_ input: EventTable.Input) -> [Action] {
        var actions: [Action] = []
        for output in table.handle(input, at: MonotonicTime.now.nanoseconds) {
            switch output {
            case .start(let source, let wanted), .change(let source, let wanted):
                if let origins = origins[source] {
                    derived[source] = wanted
                    for origin in origins { sources.want(origin, by: .derived(source)) }
                    actions.append(.derivedAreWanted)
                } else {
                    sources.want(source, by: .names, wanted)
                }
            case .stop(let source):
                if let origins = origins[source] {
                    derived[source] = nil
                    actions.append(.derivedAreNotWanted)
                    for origin in origins { sources.release(origin, by: .derived(source)) }
                } else {
                    sources.release(source, by: .names)
                }
            case .set(let name, let state): actions.append(.set(name, state))
            case .post(let name, let isAlias): actions.append(.post(name, isAlias: isAlias))
            case .answer(let question): actions.append(.answer(question))
            case .alarm(let time): actions.append(.alarm(at: time))
            }
        }
        return actions
    }

    func hasPosted(_ name: NotifyName) { table.hasPosted(name, wallClock: WallClock.now) }

    // MARK: - Questions

    /// A call requests the state of a name.
    func ask(_ name: NotifyName, _ call: BusCall) -> [Action] {
        lastQuestion += 1
        questions[lastQuestion] = (call, name)
        return handle(.asked(name, lastQuestion))
    }

    func takeQuestion(_ number: UInt64) -> (call: BusCall, name: NotifyName)? {
        questions.removeValue(forKey: number)
    }
}
