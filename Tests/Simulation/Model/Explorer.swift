// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Something whose histories can be explored.
protocol Explorable: SendableMetatype {
    associatedtype Choice

    /// What went wrong.
    var failure: String? { get }
    /// A line for each step, and for what follows from it, if these are kept.
    var notes: [String] { get }
    /// Everything that can happen now, in an order that only the state determines.
    var choices: [Choice] { get }
    var fingerprint: Fingerprint { get }
    /// One in the same state, which shares nothing with this one that either of them changes.
    var copy: Self { get }
    /// Whether something that can happen was under way, and not begun by anybody now.
    static func isUnderWay(_ choice: Choice) -> Bool
    /// - Returns: how many steps that are.
    mutating func take(_ choice: Choice) -> Int
}

/// Enters every state of a scope once.
///
/// Breadth first, those that are reached in fewer transitions come first, so a mistake is found with the shortest
/// history that there is. Depth first, it enters the state that was seen last: that finds what is wrong sooner if it takes
/// a long history.
///
/// A state is known by its fingerprint, and how it was reached by the state before and the choice that was made there.
package enum Explorer {
    package struct Outcome: Sendable {
        package var states = 0
        package var transitions = 0
        /// How many transitions the longest of the shortest histories has, if it explored breadth first.
        package var depth = 0
        package var seconds = 0.0
        /// The most memory that this process has occupied meanwhile, in bytes.
        package var memory = 0
        /// Whether nothing is left to be explored.
        package var isComplete = true
        package var failure: Failure?
    }

    /// A history that breaks a promise.
    package struct Failure: Sendable {
        package let text: String
        /// How many steps it has.
        package let length: Int
        /// A line for each step, and for what follows from it.
        package let transcript: [String]
    }

    /// The states that were seen, by number.
    private struct Seen {
        private var fingerprints: [Fingerprint] = []
        /// How each was reached.
        private(set) var parents: [UInt32] = []
        private(set) var choices: [UInt8] = []
        /// The number of a state after its place, which its fingerprint determines; 0 if there is none.
        private var slots = [UInt32](repeating: 0, count: 1 << 16)

        var count: Int { fingerprints.count }

        /// - Returns: its number, and whether it was not seen before.
        mutating func insert(_ fingerprint: Fingerprint, from parent: Int, _ choice: Int) -> (number: Int, isNew: Bool)
        {
            var place = Int(truncatingIfNeeded: fingerprint.low) & (slots.count - 1)
            while slots[place] != 0 {
                let number = Int(slots[place]) - 1
                if fingerprints[number] == fingerprint { return (number, false) }
                place = (place + 1) & (slots.count - 1)
            }
            fingerprints.append(fingerprint)
            parents.append(UInt32(parent))
            choices.append(UInt8(choice))
            slots[place] = UInt32(fingerprints.count)
            if fingerprints.count * 5 > slots.count * 3 { grow() }
            return (fingerprints.count - 1, true)
        }

        private mutating func grow() {
            slots = [UInt32](repeating: 0, count: 2 * slots.count)
            for (number, fingerprint) in fingerprints.enumerated() {
                var place = Int(truncatingIfNeeded: fingerprint.low) & (slots.count - 1)
                while slots[place] != 0 { place = (place + 1) & (slots.count - 1) }
                slots[place] = UInt32(number + 1)
            }
        }
    }

    /// A state whose steps have yet to be taken. It is made again if too many are kept.
    private struct Open<Scene> {
        let number: Int
        var scene: Scene?
    }

    private struct Candidate<Scene> {
        let parent: Int
        let choice: Int
        let isUnderWay: Bool
        let fingerprint: Fingerprint
        let scene: Scene
    }

    /// What the threads share.
    private struct Shared<Scene> {
        var seen = Seen()
        var next: [Open<Scene>] = []
        var transitions = 0
        /// The steps that were under way, from one state to another: `from` in the upper half.
        var edges: [UInt64] = []
        /// The first state from which a promise was broken, and the choice that did it.
        var broken: (parent: Int, choice: Int)?
    }

    /// How many scenes are kept of those that are reached in as many steps.
    private static let keptScenes = 100_000
    private static let chunk = 32

    /// Explores all histories that begin with a scene.
    ///
    /// - Parameters:
    ///   - limit: how many states may be seen.
    ///   - isDepthFirst: if it is, one thread does everything.
    ///   - begin: makes the first scene; the parameter says whether to keep notes.
    static func explore<Scene: Explorable>(
        limit: Int,
        threads: Int,
        isDepthFirst: Bool,
        _ begin: @escaping @Sendable (Bool) -> Scene
    ) -> Outcome {
        let clock = ContinuousClock()
        let start = clock.now
        var outcome = Outcome()
        PeakMemory.reset()
        explore(limit, threads, isDepthFirst, Work(begin), &outcome)
        outcome.memory = PeakMemory.bytes
        let time = (clock.now - start).components
        outcome.seconds = Double(time.seconds) + Double(time.attoseconds) / 1e18
        return outcome
    }

    private static func explore<Scene: Explorable>(
        _ limit: Int,
        _ threads: Int,
        _ isDepthFirst: Bool,
        _ work: Work<Scene>,
        _ outcome: inout Outcome
    ) {
        let first = work.begin(false)
        if let text = first.failure {
            outcome.failure = Failure(text: text, length: 0, transcript: work.begin(true).notes)
            return
        }
        let fingerprint = first.fingerprint
        let opened = Unshared([Open(number: 0, scene: first)])
        work.shared.withLock { shared in
            _ = shared.value.seen.insert(fingerprint, from: 0, 0)
            shared.value.next = opened.value
        }
        while true {
            let (open, count) = work.shared.withLock { shared in
                let open = Array(isDepthFirst ? shared.value.next.suffix(1) : shared.value.next[...])
                shared.value.next.removeLast(open.count)
                return (Unshared(open), shared.value.seen.count)
            }
            if open.value.isEmpty { break }
            if count > limit {
                outcome.isComplete = false
                break
            }
            work.takeAll(open, threads: threads)
            let broken = work.shared.withLock { $0.value.broken }
            outcome.depth += 1
            if let (parent, choice) = broken {
                outcome.failure = work.failure(parent, choice)
                break
            }
        }
        var edges: [UInt64] = []
        work.shared.withLock { shared in
            outcome.states = shared.value.seen.count
            outcome.transitions = shared.value.transitions
            edges = shared.value.edges
        }
        guard outcome.failure == nil, outcome.isComplete else { return }
        // The last round has found nothing new.
        outcome.depth -= 1
        if findCycle(edges, states: outcome.states) {
            outcome.failure = Failure(text: "it never comes to rest", length: 0, transcript: [])
        }
    }

    /// Whether something may go on forever although nothing new happens: takes away the states that lead nowhere, until
    /// none is left or each leads to another.
    private static func findCycle(_ edges: [UInt64], states: Int) -> Bool {
        var starts = [UInt32](repeating: 0, count: states + 1)
        var left = [UInt32](repeating: 0, count: states)
        for edge in edges {
            starts[Int(edge & 0xffff_ffff) + 1] += 1
            left[Int(edge >> 32)] += 1
        }
        for number in 0..<states { starts[number + 1] += starts[number] }
        var places = starts
        var sources = [UInt32](repeating: 0, count: edges.count)
        for edge in edges {
            let target = Int(edge & 0xffff_ffff)
            sources[Int(places[target])] = UInt32(edge >> 32)
            places[target] += 1
        }
        var over = left.indices.filter { left[$0] == 0 }
        var count = 0
        while let number = over.popLast() {
            count += 1
            for place in Int(starts[number])..<Int(starts[number + 1]) {
                let source = Int(sources[place])
                left[source] -= 1
                if left[source] == 0 { over.append(source) }
            }
        }
        return count < states
    }

    // MARK: - What the threads do

    /// Passes scenes from one thread to another.
    ///
    /// Unchecked, because a scene may have objects: a thread that takes one out of here, or puts one in, keeps no other
    /// reference to it, and two scenes share no object.
    private struct Unshared<Value>: @unchecked Sendable {
        var value: Value
        init(_ value: Value) { self.value = value }
    }

    private final class Work<Scene: Explorable>: Sendable {
        let begin: @Sendable (Bool) -> Scene
        let shared = Mutex(Unshared(Shared<Scene>()))

        init(_ begin: @escaping @Sendable (Bool) -> Scene) { self.begin = begin }

        /// Takes every step from each of these.
        func takeAll(_ open: Unshared<[Open<Scene>]>, threads: Int) {
            let count = open.value.count
            let rest = Mutex(open)
            Threads.run(count > 4 * Explorer.chunk ? threads : 1) { [self] in
                while true {
                    let some = rest.withLock { rest in
                        let some = Unshared(Array(rest.value.suffix(Explorer.chunk)))
                        rest.value.removeLast(some.value.count)
                        return some
                    }
                    if some.value.isEmpty { return }
                    take(some.value)
                }
            }
        }

        private func take(_ some: [Open<Scene>]) {
            var candidates: [Candidate<Scene>] = []
            var broken: (Int, Int)?
            for one in some {
                let scene = one.scene ?? scene(of: one.number)
                let choices = scene.choices
                for (number, choice) in choices.enumerated() {
                    var next = number == choices.count - 1 ? scene : scene.copy
                    _ = next.take(choice)
                    if next.failure != nil {
                        broken = (one.number, number)
                        break
                    }
                    candidates.append(
                        Candidate(
                            parent: one.number,
                            choice: number,
                            isUnderWay: Scene.isUnderWay(choice),
                            fingerprint: next.fingerprint,
                            scene: next
                        )
                    )
                }
            }
            let handed = Unshared((candidates, broken))
            shared.withLock { shared in
                shared.value.broken = shared.value.broken ?? handed.value.1
                for candidate in handed.value.0 {
                    shared.value.transitions += 1
                    let (number, isNew) =
                        shared.value.seen.insert(candidate.fingerprint, from: candidate.parent, candidate.choice)
                    if candidate.isUnderWay {
                        shared.value.edges.append(UInt64(candidate.parent) << 32 | UInt64(number))
                    }
                    if !isNew { continue }
                    let isKept = shared.value.next.count < Explorer.keptScenes
                    shared.value.next.append(Open(number: number, scene: isKept ? candidate.scene : nil))
                }
            }
        }

        /// The choices that lead to a state.
        private func path(to number: Int) -> [Int] {
            shared.withLock { shared in
                var path: [Int] = []
                var number = number
                while number != 0 {
                    path.append(Int(shared.value.seen.choices[number]))
                    number = Int(shared.value.seen.parents[number])
                }
                return path.reversed()
            }
        }

        private func scene(of number: Int) -> Scene {
            var scene = begin(false)
            for choice in path(to: number) { _ = scene.take(scene.choices[choice]) }
            return scene
        }

        /// The history that leads to a state and breaks a promise there.
        func failure(_ parent: Int, _ choice: Int) -> Failure {
            var scene = begin(true)
            var length = 0
            for number in path(to: parent) + [choice] { length += scene.take(scene.choices[number]) }
            return Failure(text: scene.failure ?? "", length: length, transcript: scene.notes)
        }
    }
}
