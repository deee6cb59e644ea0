// SPDX-License-Identifier: Apache-2.0

import NotifyNames

/// What happens in a simulation, derived from a seed: three chapters of about thirty steps each. At the end of each,
/// everything comes to rest and is checked.
package struct History: Sendable {
    package let seed: UInt64
    package var setting: World.Setting
    package var steps: [Step]
    /// What went wrong; nil if every promise was kept.
    package var failure: String?
    /// All steps, including those on the way to rest.
    package var stepsTaken = 0
    package var checks = 0
    package var tolerated: [Int] = []
    package var exceeded: [Int] = []

    private static let chapters = 3

    /// Generates one and runs it.
    package static func run(seed: UInt64, mutation: Mutation? = nil, isKept: Bool = false) -> History {
        var random = SplitMix(seed: seed)
        var strain = SplitMix(seed: ~seed)
        var history = History(seed: seed, setting: .random(&random), steps: [])
        history.setting.scarcity = .random(&strain)
        var rarity = SplitMix(seed: ~seed &* 0xd1b5_4a32_d192_ed03)
        history.setting.scarcity.restartsBus = rarity.chance(8)
        history.setting.exempts = rarity.chance(8)
        history.setting.reservesNames = rarity.chance(6)
        var drowsiness = SplitMix(seed: seed &* 0x9e6c_63d0_876a_46ad ^ 0x6e61_7073)
        if !history.setting.applications.isEmpty, drowsiness.chance(16) {
            history.setting.naps = .random(&drowsiness)
        }
        var succession = SplitMix(seed: seed &* 0xa24b_aed4_963e_e407 ^ 0x6865_6972)
        let (handsOver, dies) = (succession.chance(8), succession.chance(3))
        let world = World(history.setting, mutation: mutation)
        var enabled: [Step] = []
        enabled.reserveCapacity(32)
        for _ in 0..<chapters {
            var mood = Mood(&random)
            for _ in 0..<(12 + random.below(36)) {
                world.collect(&enabled)
                let step =
                    (handsOver ? world.succeed(&succession, dies: dies) : nil)
                    ?? world.strain(&strain) ?? mood.next(&random, world, enabled)
                if isKept { history.steps.append(step) }
                world.take(step)
                if world.failure != nil { break }
            }
            if world.failure != nil { break }
            let step = Step.rest(random.next())
            if isKept { history.steps.append(step) }
            world.take(step)
        }
        history.conclude(world)
        return history
    }

    /// Runs these steps again.
    package func replayed(_ steps: [Step], mutation: Mutation? = nil) -> History {
        var history = History(seed: seed, setting: setting, steps: steps)
        let world = World(setting, mutation: mutation)
        for step in steps where world.failure == nil { world.take(step) }
        history.conclude(world)
        return history
    }

    private mutating func conclude(_ world: World) {
        failure = world.failure
        stepsTaken = world.steps
        checks = world.oracle.checks
        tolerated = world.oracle.tolerated
        exceeded = world.oracle.exceeded
    }

    /// A line for each step, and for what follows from it.
    package func transcript(mutation: Mutation? = nil) -> [String] {
        let world = World(setting, mutation: mutation, isNoted: true)
        for step in steps where world.failure == nil { world.take(step) }
        return world.notes
    }

    /// The same failure in as few steps as possible.
    package func shortened(mutation: Mutation? = nil) -> History {
        var best = self
        var size = max(1, steps.count / 2)
        while size >= 1 {
            var start = 0
            while start < best.steps.count {
                var fewer = best.steps
                fewer.removeSubrange(start..<min(start + size, fewer.count))
                let other = replayed(fewer, mutation: mutation)
                if let failure = other.failure, History.kind(failure) == History.kind(best.failure ?? "") {
                    best = other
                } else {
                    start += size
                }
            }
            size /= 2
        }
        return best
    }

    /// A failure without its numbers.
    private static func kind(_ failure: String) -> String { failure.filter { !$0.isNumber } }
}

extension World.Setting {
    static func random(_ random: inout SplitMix) -> World.Setting {
        let count = 1 + random.below(3)
        // Sometimes one process has two connections.
        let processes = (0..<count).map { $0 > 0 && random.chance(3) ? $0 - 1 : $0 }
        let first = processes.reduce(into: [Int]()) { all, one in all.append(min(one, (all.max() ?? -1) + 1)) }
        let all = Array(0..<Subject.count)
        let subjects = random.chance(2) ? all : (0...random.below(3)).map { _ in random.below(Subject.count) }
        let names = (0..<Subject.nameCount).filter { name in subjects.contains { Subject.matches($0, name) } }
        var registrations: [(Int, Int)] = []
        for observer in 0..<count {
            for _ in 0...random.below(3) { registrations.append((observer, subjects[random.below(subjects.count)])) }
        }
        return World.Setting(
            processes: first,
            registrations: registrations,
            names: names,
            subjects: subjects,
            busStartsAgents: random.chance(3),
            beginsWithAgent: !random.chance(4),
            prefixRules: random.chance(2) ? 1 : 1 << random.below(3),
            follower: random.chance(3) ? first[random.below(count)] : nil,
            applications: random.chance(2) ? [] : Set(first.filter { _ in !random.chance(3) }),
            focusFollowers: .random(&random, usual: .asking),
            sessionFollowers: .random(&random, usual: .asking),
            sleepFollowers: .random(&random, usual: .nobody),
            pendingLimit: random.chance(6) ? 1 + random.below(3) : nil,
            encodes: random.chance(16)
        )
    }
}

extension Desktop.Who {
    static func random(_ random: inout SplitMix, usual: Self) -> Self {
        random.chance(4) ? allCases[random.below(allCases.count)] : usual
    }
}

/// The character of a chapter: how often each kind of thing happens.
private struct Mood {
    private let disturbs: Int
    private let stops: Bool
    private let cuts: Bool
    private let endsAgents: Bool
    private let changes: Bool
    private let locks: Bool
    private let setsStates: Bool
    private let passesTime: Bool
    private let asksOften: Bool
    /// How many more requests several persons make for one process, before its state has changed.
    private var requests = 0
    private var target = 0
    /// For how many more steps nothing new begins.
    private var undisturbed = 0

    init(_ random: inout SplitMix) {
        disturbs = 2 + random.below(5)
        stops = random.chance(2)
        cuts = random.chance(4)
        endsAgents = random.chance(2)
        changes = !random.chance(8)
        locks = random.chance(3)
        setsStates = random.chance(4)
        passesTime = random.chance(4)
        asksOften = random.chance(4)
    }

    private static let states: [LifecycleState] = [.foreground, .background, .suspended, .suspended, .foreground]

    mutating func next(_ random: inout SplitMix, _ world: World, _ enabled: [Step]) -> Step {
        // A short moment in which it matters who is stopped.
        if stops, random.chance(2), let process = world.processBeingHandedNames {
            undisturbed = 40
            return .stop(process: process, tears: false)
        }
        if requests > 0, random.chance(2) {
            requests -= 1
            return change(&random, world, target)
        }
        undisturbed -= 1
        if !enabled.isEmpty, undisturbed > 0 || !random.chance(disturbs) { return enabled[random.below(enabled.count)] }
        let observer = random.below(world.observers.count)
        let process = random.below(world.processes.count)
        switch random.below(22) {
        case 0..<7: return post(&random, world)
        case 7: return .observe(observer, world.setting.subjects[random.below(world.setting.subjects.count)])
        case 8:
            return random.chance(2) ? .cancel(random.below(max(1, world.registrations.count))) : .go(process: process)
        case 9..<13:
            guard changes else { break }
            if random.chance(6) { return .report(observer, Mood.states[random.below(Mood.states.count)]) }
            if asksOften { (requests, target) = (2 + random.below(4), process) }
            return change(&random, world, process)
        case 13, 14: if stops { return .stop(process: process, tears: random.chance(3)) }
        case 15: if stops { return .go(process: process) }
        case 16: if cuts { return .cut(observer: observer, readable: random.below(4)) }
        case 17:
            guard endsAgents else { break }
            return random.chance(4) ? .endAgent : .killAgent
        case 18: if endsAgents || world.bus.agent == nil { return .startAgent }
        case 19, 20:
            if locks, random.chance(2) { return desktop(&random, world, observer) }
            let names = world.observers[observer].subjects.filter { !Subject.isPrefix($0) }
            if setsStates, !names.isEmpty {
                let name = names[random.below(names.count)]
                return .setNameState(observer, name: name, value: UInt64(1 + random.below(100)))
            }
        default:
            if passesTime { return .time }
            if random.chance(12) { return .kill(process: process) }
        }
        return post(&random, world)
    }

    private func change(_ random: inout SplitMix, _ world: World, _ process: Int) -> Step {
        let state = Mood.states[random.below(Mood.states.count)]
        let person = random.below(World.persons)
        let isShared = random.chance(8) && world.setting.applications.contains(process)
        if random.chance(8) {
            if random.chance(3) { return .releaseAll(by: person) }
            return isShared ? .releaseApplication(by: person) : .release(process: process, by: person)
        }
        let freezes = state == .suspended && random.chance(3)
        if isShared { return .changeApplication(state, freezes: freezes, by: person) }
        if random.chance(4),
            let observer = world.observers.indices.first(where: { world.places[$0].process == process })
        {
            return .changeOne(observer: observer, state, by: person)
        }
        return .change(process: process, state, freezes: freezes, by: person)
    }

    private func desktop(_ random: inout SplitMix, _ world: World, _ observer: Int) -> Step {
        if world.setting.naps != nil {
            if random.chance(4) { return .time }
            if random.chance(6) { return .sound(random.chance(2)) }
        }
        switch random.below(8) {
        case 0, 1: return .follow(observer, random.chance(2))
        case 2, 3: return .lock(random.chance(2))
        case 4: return .sleep(random.chance(2))
        default: return .focus(source: random.below(Desktop.sources.count), focus(&random, world))
        }
    }

    private func focus(_ random: inout SplitMix, _ world: World) -> Desktop.Focus {
        let process = random.below(world.processes.count)
        switch random.below(6) {
        case 0, 1: return .unknown
        case 2: return .nobody
        case 3:
            let others = Desktop.Processes(world.processes.indices.filter { _ in random.chance(2) })
            return .among(others.contains(process) ? process : nil, others)
        default: return .process(process)
        }
    }

    private func post(_ random: inout SplitMix, _ world: World) -> Step {
        .post(poster: random.below(2), name: world.setting.names[random.below(world.setting.names.count)])
    }
}
