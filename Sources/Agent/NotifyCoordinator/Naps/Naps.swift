// SPDX-License-Identifier: Apache-2.0

import NotifyNames

/// Puts programs to sleep while the user is not looking at them, and wakes them when the user is: decides what to do,
/// without doing it.
///
/// A program can nap once it has had the focus, so a program without a window never does. It naps when it has been
/// without the focus for a while and is not in use. If it is not known which program has the focus, all are awake.
package struct Naps: Hashable, Sendable {
    enum Effect: Hashable {
        /// The state that a nap gives a program has changed.
        case decide(NapProgram)
        /// Stop these processes, and what belongs to them. They are suspended.
        case freeze(NapProgram, [ProcessID])
        case thaw(NapProgram)
        /// Report which programs are in use in these ways, now and when it changes; with `job`, which of these processes
        /// are terminals in which something runs. Without any, no longer.
        case follow(UseQuestion?)
        /// Call `timeHasCome` then; it replaces an earlier time.
        case alarm(at: Int64?)
    }

    private enum Step: Hashable {
        case focused
        /// It has lost the focus, and naps then unless it is in use.
        case waiting(until: Int64)
        /// It has waited; whether it is in use is being found out.
        case asking
        case inUse
        /// It has its state. If it is to be stopped, it has until then to get ready, once everything that it observes is
        /// suspended.
        case falling(until: Int64?)
        case asleep
        /// Stopped, with these processes if it has no unit.
        case frozen(Set<ProcessID>)
    }

    private struct Entry: Hashable {
        let rule: Int
        var isNamed: Bool
        /// Those that have had the focus, the last one at the end.
        var processes: [ProcessID] = []
        var wasFullscreen = false
        /// Whether something ran in its terminal. Nothing says when that is over.
        var hasJob = false
        var step = Step.focused
        /// Those that have said that they are ready to be stopped.
        var ready: Set<ProcessID> = []
    }

    /// As whom its decisions are listed.
    package static let decider = Decider.source("nap")
    /// How long a program may take to get ready for being stopped, in nanoseconds.
    static let farewell: Int64 = 1_000_000_000
    /// More programs than a user looks at in turns.
    static let maximumPrograms = 256
    private static let maximumProcesses = 64

    package let rules: [NapRule]
    /// Whether a person has turned them off.
    package private(set) var isOff = false
    /// nil as long as that is unknown.
    private var isOnBattery: Bool?
    private var entries: [NapProgram: Entry] = [:]
    /// What was asked last; nil if nothing is followed.
    private var question: UseQuestion?
    private var lastQuestion: UInt64 = 0
    /// Whether a question is pending that has not been withdrawn.
    private var isFollowing = false
    private var alarm: Int64?
    private var effects: [Effect] = []

    init(_ rules: [NapRule]) { self.rules = rules }

    /// Whether nothing ever naps, so that nothing is to be done.
    package var isEmpty: Bool { rules.isEmpty }
    package var needsBattery: Bool { rules.contains(where: \.needsBattery) }

    // MARK: - Questions

    /// The state that a nap gives a process; nil if it is awake.
    func state(of process: ProcessID, application: String) -> LifecycleState? {
        let program = NapProgram(application: application, process)
        guard let entry = entries[program] else { return nil }
        switch entry.step {
        case .focused, .waiting, .asking, .inUse: return nil
        case .falling, .asleep, .frozen: return rules[entry.rule].depth == .background ? .background : .suspended
        }
    }

    /// Those that are to be stopped.
    var falling: [NapProgram] { programs { if case .falling = $0.step { true } else { false } } }

    /// Whether a process may say that it is ready to be stopped.
    func isFalling(_ program: NapProgram) -> Bool {
        if case .falling? = entries[program]?.step { true } else { false }
    }

    /// How many programs nap.
    package var count: Int {
        entries.values.count { entry in
            switch entry.step {
            case .falling, .asleep, .frozen: true
            case .focused, .waiting, .asking, .inUse: false
            }
        }
    }

    /// For display, on one line.
    package var text: String {
        if isEmpty { return "no nap.conf" }
        return isOff ? "off" : "on, \(count) program\(count == 1 ? "" : "s") asleep"
    }

    private func programs(where isMeant: (Entry) -> Bool) -> [NapProgram] {
        entries.filter { isMeant($0.value) }.map(\.key).sorted()
    }

    // MARK: - Events

    /// - Parameter focused: all that have the focus; nil if no source knows.
    mutating func focusHasMoved(_ focused: [FocusedProcess]?, now: Int64) -> [Effect] {
        guard let focused else {
            for program in entries.keys.sorted() { wake(program) }
            entries = [:]
            return conclude()
        }
        for process in focused { enter(process) }
        for (program, entry) in entries.sorted(by: { $0.key < $1.key }) {
            let own = focused.filter { has(program, entry, $0) }
            if !own.isEmpty {
                entries[program]?.wasFullscreen = own.contains(where: \.isFullscreen)
                entries[program]?.hasJob = false
                wake(program)
            } else if entry.step == .focused {
                beginWaiting(program, entry, now)
            }
        }
        return conclude()
    }

    /// What is in use, as far as it was asked.
    mutating func areUsed(_ uses: [NapRule.Use: Set<FocusedProcess>], question number: UInt64, now: Int64) -> [Effect] {
        guard question?.number == number else { return [] }
        for (program, entry) in entries.sorted(by: { $0.key < $1.key }) {
            switch entry.step {
            case .asking:
                let hasJob = !entry.isNamed && isUsed(program, [.job], uses)
                if hasJob || isUsed(program, rules[entry.rule].keeps, uses) {
                    entries[program]?.hasJob = hasJob
                    entries[program]?.step = .inUse
                } else {
                    fallAsleep(program)
                }
            case .inUse where !stays(entry) && !isUsed(program, rules[entry.rule].keeps, uses):
                beginWaiting(program, entry, now)
            default: break
            }
        }
        return conclude()
    }

    mutating func powerHasChanged(isOnBattery: Bool?, now: Int64) -> [Effect] {
        guard self.isOnBattery != isOnBattery else { return [] }
        self.isOnBattery = isOnBattery
        adapt(now)
        return conclude()
    }

    mutating func turn(off isOff: Bool, now: Int64) -> [Effect] {
        self.isOff = isOff
        adapt(now)
        return conclude()
    }

    mutating func timeHasCome(now: Int64) -> [Effect] {
        alarm = nil
        for (program, entry) in entries.sorted(by: { $0.key < $1.key }) {
            switch entry.step {
            case .waiting(let time) where time <= now:
                if stays(entry) {
                    entries[program]?.step = .inUse
                } else if interests(entry).isEmpty {
                    fallAsleep(program)
                } else {
                    entries[program]?.step = .asking
                    question = nil
                }
            // Of those that have had their time to get ready `isSuspended` says whether they can be stopped.
            default: break
            }
        }
        return conclude()
    }

    /// Everything that a program observes is suspended, so it can be stopped.
    ///
    /// - Parameters:
    ///   - processes: those that observe.
    ///   - followers: those of them that want to get ready first.
    mutating func isSuspended(
        _ program: NapProgram,
        _ processes: [ProcessID],
        followers: Set<ProcessID>,
        now: Int64
    ) -> [Effect] {
        guard let entry = entries[program], case .falling(let time) = entry.step else { return [] }
        if followers.isSubset(of: entry.ready) || time.map({ $0 <= now }) == true {
            freeze(program, processes)
        } else if time == nil {
            entries[program]?.step = .falling(until: now + Naps.farewell)
        }
        return conclude()
    }

    /// These processes have been stopped for a program.
    mutating func isFrozen(_ program: NapProgram, _ processes: [ProcessID]) {
        if case .frozen? = entries[program]?.step { entries[program]?.step = .frozen(Set(processes)) }
    }

    /// A process says that it is ready to be stopped.
    mutating func isReady(_ process: ProcessID, of program: NapProgram) { entries[program]?.ready.insert(process) }

    /// A program that is stopped, or about to be, is wanted to run: it stays in its state, and is stopped again when
    /// `isSuspended` says so.
    mutating func mustRun(_ program: NapProgram) -> [Effect] {
        switch entries[program]?.step {
        case .frozen: effects.append(.thaw(program))
        case .falling(_?): break
        default: return []
        }
        entries[program]?.step = .falling(until: nil)
        return conclude()
    }

    /// A program that is stopped is to end: it is awake until it has had the focus again.
    mutating func isToEnd(_ program: NapProgram) -> [Effect] {
        wake(program)
        entries[program] = nil
        return conclude()
    }

    /// The agent ends.
    mutating func end() -> [Effect] {
        effects += programs { if case .frozen = $0.step { true } else { false } }.map { .thaw($0) }
        entries = [:]
        return conclude()
    }

    // MARK: - Steps

    /// Notes that a process has the focus, if it can nap.
    private mutating func enter(_ process: FocusedProcess) {
        guard let id = process.id, let program = NapProgram(process) else { return }
        if entries[program] == nil {
            for (index, rule) in rules.enumerated() {
                guard let match = rule.match(process) else { continue }
                makeRoom()
                guard entries.count < Naps.maximumPrograms else { return }
                entries[program] = Entry(rule: index, isNamed: match == .named)
                break
            }
        }
        guard var entry = entries.removeValue(forKey: program) else { return }
        entry.processes.removeAll { $0 == id }
        if entry.processes.count == Naps.maximumProcesses { entry.processes.removeFirst() }
        entry.processes.append(id)
        entries[program] = entry
        wake(program)
    }

    /// Whether a process is a program's, as far as stopping it is concerned.
    private func has(_ program: NapProgram, _ entry: Entry, _ process: FocusedProcess) -> Bool {
        if process.belongs(to: program) { return true }
        // The program that started it may have ended meanwhile.
        guard case .frozen(let stopped) = entry.step, let id = process.id else { return false }
        return stopped.contains(id)
    }

    /// Nothing reports that a program has ended. So those without the focus are forgotten when there are too many: they
    /// are awake until they have had it again.
    private mutating func makeRoom() {
        guard entries.count >= Naps.maximumPrograms else { return }
        for program in programs(where: { $0.step != .focused }) {
            wake(program)
            entries[program] = nil
        }
    }

    private mutating func wake(_ program: NapProgram) {
        guard let entry = entries[program], entry.step != .focused else { return }
        entries[program]?.step = .focused
        entries[program]?.ready = []
        switch entry.step {
        case .focused, .waiting, .asking, .inUse: break
        case .falling, .asleep: effects.append(.decide(program))
        case .frozen: effects += [.thaw(program), .decide(program)]
        }
    }

    private mutating func beginWaiting(_ program: NapProgram, _ entry: Entry, _ now: Int64) {
        // With neither the focus nor a nap in sight it stays as it is.
        let (end, isBeyond) = now.addingReportingOverflow(rules[entry.rule].delay)
        let mayNap = !isBeyond && isWanted(entry)
        entries[program]?.step = .waiting(until: mayNap ? end : .max)
    }

    private func isWanted(_ entry: Entry) -> Bool {
        !isOff && (!rules[entry.rule].needsBattery || isOnBattery == true)
    }

    /// Whether programs may nap at all has changed.
    private mutating func adapt(_ now: Int64) {
        for (program, entry) in entries.sorted(by: { $0.key < $1.key }) where entry.step != .focused {
            switch entry.step {
            case .waiting(.max) where isWanted(entry): beginWaiting(program, entry, now)
            case _ where !isWanted(entry):
                wake(program)
                entries[program]?.step = .waiting(until: .max)
            default: break
            }
        }
    }

    private mutating func fallAsleep(_ program: NapProgram) {
        guard let entry = entries[program] else { return }
        entries[program]?.step = rules[entry.rule].depth == .frozen ? .falling(until: nil) : .asleep
        effects.append(.decide(program))
    }

    private mutating func freeze(_ program: NapProgram, _ processes: [ProcessID]) {
        guard let entry = entries[program] else { return }
        entries[program]?.step = .frozen([])
        effects.append(.freeze(program, (Set(entry.processes).union(processes)).sorted()))
    }

    // MARK: - Uses

    /// What has to be found out before a program naps.
    private func interests(_ entry: Entry) -> Set<NapRule.Use> {
        let uses = rules[entry.rule].keeps.subtracting([.fullscreen])
        return entry.isNamed ? uses : uses.union([.job])
    }

    /// Whether a program stays awake until it has had the focus again.
    private func stays(_ entry: Entry) -> Bool {
        entry.hasJob || entry.wasFullscreen && rules[entry.rule].keeps.contains(.fullscreen)
    }

    private func isUsed(
        _ program: NapProgram,
        _ ways: Set<NapRule.Use>,
        _ uses: [NapRule.Use: Set<FocusedProcess>]
    ) -> Bool {
        ways.contains { way in
            uses[way]?.contains { $0.belongs(to: program) } == true
        }
    }

    // MARK: - What the agent has to do

    private mutating func conclude() -> [Effect] {
        followUses()
        let next = entries.values.compactMap { entry -> Int64? in
            switch entry.step {
            case .waiting(let time): time == .max ? nil : time
            case .falling(let time): time
            default: nil
            }
        }.min()
        if next != alarm {
            alarm = next
            effects.append(.alarm(at: next))
        }
        defer { effects = [] }
        return effects
    }

    private mutating func followUses() {
        var (wanted, terminals): (Set<NapRule.Use>, [Int32]) = ([], [])
        for entry in entries.values {
            switch entry.step {
            case .asking:
                let uses = interests(entry)
                wanted.formUnion(uses)
                if uses.contains(.job) { terminals += entry.processes.map(\.pid) }
            case .inUse where !stays(entry): wanted.formUnion(interests(entry).subtracting([.job]))
            default: break
            }
        }
        terminals.sort()
        // A reader that has just come must get an answer, even if the question is the same.
        if let question, (question.uses, question.terminals) == (wanted, terminals) { return }
        if wanted.isEmpty {
            if isFollowing { effects.append(.follow(nil)) }
            (question, isFollowing) = (nil, false)
            return
        }
        lastQuestion += 1
        let new = UseQuestion(number: lastQuestion, uses: wanted, terminals: terminals)
        (question, isFollowing) = (new, true)
        effects.append(.follow(new))
    }
}

/// What has to be known before a program naps. Answers bear the number of the last question.
package struct UseQuestion: Hashable, Sendable {
    package let number: UInt64
    package let uses: Set<NapRule.Use>
    /// For those that may be terminals.
    package let terminals: [Int32]
}
