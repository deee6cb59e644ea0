// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore
import NotifyNames

/// How the application naps, if it does.
package struct NapSetting: Sendable {
    static let delay: Int64 = 1_000_000

    let depth: NapRule.Depth
    /// Whether it stays awake while it plays sound.
    package let heedsSound: Bool

    static func random(_ random: inout SplitMix) -> NapSetting {
        let depths = NapRule.Depth.allCases
        return NapSetting(depth: depths[random.below(depths.count)], heedsSound: random.chance(2))
    }

    /// As `nap.conf` would say it.
    var rule: NapRule {
        var rule = NapRule()
        rule.applications = [World.Setting.application]
        (rule.delay, rule.depth, rule.keeps) = (NapSetting.delay, depth, heedsSound ? [.audio] : [])
        return rule
    }

    var state: LifecycleState { depth == .background ? .background : .suspended }
}

/// What there is to know about the application's nap without the agent's code.
struct NapModel: Hashable {
    /// Whether it has had the focus since the agent came, or since a source last knew who has it.
    var isCandidate = false
    /// When it lost the focus; nil while it has it.
    var lost: Int64?
    var playsSound = false
    /// Whether it has begun to play so late that it may have napped already, and then naps on.
    var beganLate = false
}

// The application naps while it does not have the focus.
extension World {
    /// Who has the focus, as far as any source knows; nil if none does.
    private var focused: Set<Int>? {
        var focused: Set<Int>?
        for source in desktop.focus {
            switch source {
            case .unknown: break
            case .nobody: focused = focused ?? []
            case .process(let process): focused = (focused ?? []).union([process])
            case .among(let process, _): focused = (focused ?? []).union(process.map { [$0] } ?? [])
            }
        }
        return focused
    }

    private var isMeantToNap: Bool { setting.naps != nil && !setting.exempts }

    private var nappers: [SimulatedObserver] { observers.filter { setting.applications.contains($0.process) } }

    /// - Parameter isNew: whether the agent has just started, and knows nothing.
    func focusMayHaveMoved(isNew: Bool = false) {
        guard isMeantToNap else { return }
        if isNew { nap = NapModel(playsSound: nap.playsSound) }
        guard let focused else {
            (nap.isCandidate, nap.lost, nap.beganLate) = (false, nil, false)
            return nobodyKnowsWhoNaps()
        }
        if focused.contains(where: setting.applications.contains) {
            (nap.isCandidate, nap.lost, nap.beganLate) = (true, nil, false)
        } else if nap.isCandidate, nap.lost == nil {
            nap.lost = clock
        }
        nobodyKnowsWhoNaps()
    }

    func soundChanges(_ plays: Bool) {
        guard isMeantToNap, nap.playsSound != plays else { return }
        nap.playsSound = plays
        nap.beganLate = plays && nap.lost.map { clock >= $0 + NapSetting.delay } == true
        nobodyKnowsWhoNaps()
        if let agent, agent.isAlive, agent.useQuestion != nil { agent.tellUses(self) }
    }

    /// From now on the application may be awake, or nap.
    func nobodyKnowsWhoNaps() {
        guard isMeantToNap, let naps = setting.naps else { return }
        for observer in nappers {
            if naps.state == .background {
                oracle.desktopChanges(observer.number)
            } else {
                oracle.napChanges(observer.number)
            }
        }
    }

    /// The state that a nap gives an observer once everything has come to rest.
    ///
    /// - Parameter isNapping: what the agent says, if either is right.
    func napState(of observer: SimulatedObserver, _ isNapping: Bool) -> LifecycleState? {
        guard isMeantToNap, let naps = setting.naps, setting.applications.contains(observer.process), hasLostFocus
        else { return nil }
        if naps.heedsSound, nap.playsSound, !(nap.beganLate && isNapping) { return nil }
        return naps.state
    }

    private var hasLostFocus: Bool { nap.isCandidate && nap.lost != nil }

    /// The agent has decided that a program naps.
    func checkNap(of agent: SimulatedAgent) {
        // It may not have heard yet what has happened since it began to wait.
        let isBehind = agent.news.waiting.contains { if case .news = $0 { true } else { false } }
        guard !isBehind, let lost = nap.lost, clock < lost + NapSetting.delay / 2 else { return }
        oracle.fail("a program naps that has just had the focus")
    }

    /// At rest.
    func checkNaps(_ agent: SimulatedAgent?) {
        for process in processes.indices where processes[process].isNapping && !processes[process].hasEnded {
            let isHeld = agent?.napping.values.contains { $0.contains(SimulatedAgent.process(process)) } == true
            if !isHeld || !hasLostFocus { oracle.fail("process \(process) stands still, and nobody has it nap") }
        }
    }
}

extension Oracle {
    /// An observer may be told that its program naps, or that it is awake: no name is lost.
    mutating func napChanges(_ observer: Int) {
        if contracts[observer].known != nil, contracts[observer].isByPerson { return }
        if contracts[observer].known == .background { return desktopChanges(observer) }
        let mayDrop = contracts[observer].known == nil && contracts[observer].mayDrop
        changeBegins(observer, .suspended)
        changeEnded(observer, .suspended, isDone: false)
        contracts[observer].mayDrop = mayDrop
        contracts[observer].mayReplay = true
    }
}

// What the agent has to do about naps.
extension SimulatedAgent {
    func performNap(_ effect: Effect, _ world: World) {
        switch effect {
        case .freezeProgram(let program, let members):
            napping[program] = members
            for process in members { world.processes[Int(process.pid) - 100].isNapping = true }
        case .thawProgram(let program):
            for process in napping.removeValue(forKey: program) ?? [] {
                world.processes[Int(process.pid) - 100].isNapping = false
            }
        case .napAlarm(let time):
            napAlarm = time
        case .followUses(let question):
            useQuestion = question
            if question != nil { tellUses(world) }
        default: break
        }
    }

    func tellUses(_ world: World) {
        guard let question = useQuestion else { return }
        var uses: [NapRule.Use: Set<FocusedProcess>] = [:]
        if question.uses.contains(.audio) {
            let plays = world.nap.playsSound && world.mutation != .ignoresUse
            let process = world.setting.applications.min().map { world.setting.focused($0, nil) }
            uses[.audio] = plays ? Set([process].compactMap { $0 }) : []
        }
        news.append(.areUsed(uses, question: question.number))
    }

    func napTimeHasCome(_ world: World) {
        napAlarm = nil
        world.nobodyKnowsWhoNaps()
        feed(.napAlarm, world)
    }
}
