// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore
import NotifyNames

/// How to make a source.
struct SourceMaker {
    /// Whether the board takes what it reports, for decisions about programs.
    let reportsFacts: Bool
    /// Why it can't work here at all; nil if it may.
    let obstacle: String?
    let make: () -> any Source

    init(reportsFacts: Bool = false, unless obstacle: String? = nil, _ make: @escaping () -> any Source) {
        (self.reportsFacts, self.obstacle, self.make) = (reportsFacts, obstacle, make)
    }
}

/// The sources that this agent can use. Each works while it has a reader.
final class SourceSet {
    enum Reader: Hashable {
        /// The agent, as long as it lives.
        case agent
        /// The decisions about programs: there are observers.
        case decisions
        /// Names that the source itself serves.
        case names
        /// Names that follow from facts, by the word for their group.
        case derived(String)
    }

    private struct Working {
        let driver: SourceDriver
        var readers: Set<Reader>
    }

    /// How long sources continue once there are no observers any more, in milliseconds.
    private static let lingering: Int64 = 10_000
    /// How one is that decides about programs, and has no reader.
    static let idle = SourceCondition.off("idle until an observer registers")

    private let loop: EventLoop
    private let makers: [String: SourceMaker]
    /// Those that decide about programs, in order of precedence.
    private let deciding: [String]
    /// What they have found, for the agent to look at.
    let board: FactBoard
    /// Is told what becomes of names.
    private let deliver: (_ source: String, SourceReport) -> Void
    /// Is told that nothing which a source has reported counts any more, and how it is now, if that is known.
    private let reset: (_ source: String, SourceCondition?) -> Void
    private var working: [String: Working] = [:]
    private var observers: [ProcessID: Newcomer.ProcessFacts] = [:]
    /// Whether those that decide about programs work, and when they rest.
    private var isDeciding = false
    private var restTimer: Int?

    init(
        _ makers: [String: SourceMaker],
        deciding: [String],
        on loop: EventLoop,
        board: FactBoard,
        reset: @escaping (_ source: String, SourceCondition?) -> Void,
        deliver: @escaping (_ source: String, SourceReport) -> Void
    ) {
        (self.makers, self.deciding, self.loop, self.board) = (makers, deciding, loop, board)
        (self.reset, self.deliver) = (reset, deliver)
    }

    /// Says how those are that do not work yet.
    func begin() {
        for name in deciding { reset(name, makers[name]?.obstacle.map { .off($0) } ?? SourceSet.idle) }
    }

    /// A source that works, by its type.
    func source<Kind: Source>(_ kind: Kind.Type) -> Kind? {
        working.values.lazy.compactMap { $0.driver.source as? Kind }.first
    }

    // MARK: - Who reads what

    /// Has a source work for a reader from now on.
    ///
    /// - Parameter names: those that it is to serve, for `Reader.names`.
    func want(_ name: String, by reader: Reader, _ names: Set<NotifyName> = []) {
        if let driver = working[name]?.driver {
            working[name]?.readers.insert(reader)
            if reader == .names { driver.source.want(names) }
            return
        }
        guard let maker = makers[name] else { return }
        if let obstacle = maker.obstacle {
            if !maker.reportsFacts { loop.soon { [deliver] in deliver(name, .off(obstacle)) } }
            return
        }
        let driver = SourceDriver(maker.make(), on: loop) { [weak self] report in
            guard let self, !(maker.reportsFacts && board.post(name, report)) else { return }
            // The agent may be in the middle of starting it.
            loop.soon { [deliver] in deliver(name, report) }
        }
        working[name] = Working(driver: driver, readers: [reader])
        if maker.reportsFacts { reset(name, nil) }
        driver.source.want(names)
        for process in observers.values { driver.source.observerHasCome(process) }
        driver.begin()
    }

    func release(_ name: String, by reader: Reader) {
        working[name]?.readers.remove(reader)
        if working[name]?.readers.isEmpty == true { stop(name) }
    }

    /// There are observers: has all that decide about programs work.
    func decide() {
        loop.cancel(restTimer)
        guard !isDeciding else { return }
        isDeciding = true
        for name in deciding { want(name, by: .decisions) }
        source(ShellSource.self)?.ask()
    }

    /// There are no observers any more.
    func restLater() {
        loop.cancel(restTimer)
        restTimer = loop.after(SourceSet.lingering) { [weak self] in self?.rest() }
    }

    func rest() {
        isDeciding = false
        for name in deciding { release(name, by: .decisions) }
    }

    func end() {
        for name in Array(working.keys) { stop(name) }
    }

    private func stop(_ name: String) {
        working.removeValue(forKey: name)?.driver.end()
        guard makers[name]?.reportsFacts == true else { return }
        board.forget(name)
        reset(name, SourceSet.idle)
    }

    // MARK: - Observing processes

    /// A process has started to observe, or has moved to another cgroup.
    func present(_ process: Newcomer.ProcessFacts) {
        observers[process.id] = process
        for entry in working.values { entry.driver.source.observerHasCome(process) }
    }

    func forget(_ process: ProcessID) {
        guard observers.removeValue(forKey: process) != nil else { return }
        for entry in working.values { entry.driver.source.observerHasGone(process) }
    }
}
