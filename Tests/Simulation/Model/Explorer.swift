// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Enters every state of a scope once, those that are reached in fewer steps first. So what it finds is found with the
/// shortest history that there is.
///
/// A state is known by its fingerprint, and how it was reached by the state before and the choice that was made there.
package final class Explorer {
    package struct Outcome: Sendable {
        package var states = 0
        package var transitions = 0
        /// How many steps the longest of the shortest ways takes.
        package var depth = 0
        package var seconds = 0.0
        /// What the states that were seen take up, in bytes.
        package var memory = 0
        /// Whether nothing is left to be explored.
        package var isComplete = true
        package var failure: Failure?
    }

    /// A history that breaks a promise.
    package struct Failure: Sendable {
        package let text: String
        package let steps: [Step]
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
        var memory: Int {
            fingerprints.capacity * MemoryLayout<Fingerprint>.stride + 4 * (parents.capacity + slots.capacity)
                + choices.capacity
        }

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

    /// A state whose steps have yet to be taken. Its world is made again if too many are kept.
    private struct Open {
        let number: Int
        var situation: Situation?
    }

    private struct Candidate {
        let parent: Int
        let choice: Int
        let isUnderWay: Bool
        let fingerprint: Fingerprint
        let situation: Situation
    }

    /// What the threads share.
    private struct Shared {
        var seen = Seen()
        var next: [Open] = []
        var transitions = 0
        /// The steps that were under way, from one state to another: `from` in the upper half.
        var edges: [UInt64] = []
        /// The first state from which a promise was broken, and the choice that did it.
        var broken: (parent: Int, choice: Int)?
    }

    /// How many worlds are kept.
    private static let keptWorlds = 50_000
    private static let chunk = 32

    private let scope: Scope
    private let mutation: Mutation?
    /// How many states may be seen.
    private let limit: Int

    package init(_ scope: Scope, mutation: Mutation? = nil, limit: Int) {
        self.scope = scope
        self.mutation = mutation
        self.limit = limit
    }

    package func run(threads: Int) -> Outcome {
        let clock = ContinuousClock()
        let begin = clock.now
        var outcome = explore(threads)
        let time = (clock.now - begin).components
        outcome.seconds = Double(time.seconds) + Double(time.attoseconds) / 1e18
        return outcome
    }

    private func explore(_ threads: Int) -> Outcome {
        var outcome = Outcome()
        let first = Situation(scope, mutation: mutation)
        if let text = first.world.failure {
            outcome.failure = Failure(text: text, steps: [], transcript: [])
            return outcome
        }
        let work = Work(scope: scope, mutation: mutation)
        work.shared.withLock { shared in
            _ = shared.value.seen.insert(first.fingerprint, from: 0, 0)
            shared.value.next = [Open(number: 0, situation: first)]
        }
        while true {
            let (open, count) = work.shared.withLock { shared in
                defer { shared.value.next = [] }
                return (Unshared(shared.value.next), shared.value.seen.count)
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
                outcome.failure = failure(work, parent, choice)
                break
            }
        }
        work.shared.withLock { shared in
            outcome.states = shared.value.seen.count
            outcome.transitions = shared.value.transitions
            outcome.memory = shared.value.seen.memory + 8 * shared.value.edges.capacity
            guard outcome.failure == nil, outcome.isComplete else { return }
            // The last round has found nothing new.
            outcome.depth -= 1
            if Explorer.findCycle(shared.value.edges, states: shared.value.seen.count) {
                outcome.failure = Failure(text: "it never comes to rest", steps: [], transcript: [])
            }
        }
        return outcome
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

    private func failure(_ work: Work, _ parent: Int, _ choice: Int) -> Failure {
        let path = work.path(to: parent) + [choice]
        var situation = Situation(scope, mutation: mutation, isNoted: true)
        situation.world.notes = []
        var steps: [Step] = []
        for number in path {
            let choice = situation.choices(scope)[number]
            steps += situation.take(choice)
        }
        return Failure(text: situation.world.failure ?? "", steps: steps, transcript: situation.world.notes)
    }

    // MARK: - What the threads do

    /// Passes worlds from one thread to another.
    ///
    /// Unchecked, because a world is an object: a thread that takes one out of here, or puts one in, keeps no other
    /// reference to it, and two worlds share no object.
    private struct Unshared<Value>: @unchecked Sendable {
        var value: Value
        init(_ value: Value) { self.value = value }
    }

    private final class Work: Sendable {
        let scope: Scope
        let mutation: Mutation?
        let shared = Mutex(Unshared(Shared()))

        init(scope: Scope, mutation: Mutation?) {
            self.scope = scope
            self.mutation = mutation
        }

        /// Takes every step from each of these.
        func takeAll(_ open: Unshared<[Open]>, threads: Int) {
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

        private func take(_ some: [Open]) {
            var candidates: [Candidate] = []
            var broken: (Int, Int)?
            for one in some {
                let situation = one.situation ?? situation(of: one.number)
                let choices = situation.choices(scope)
                for (number, choice) in choices.enumerated() {
                    var next = number == choices.count - 1 ? situation : situation.copy
                    next.take(choice)
                    if next.world.failure != nil {
                        broken = (one.number, number)
                        break
                    }
                    candidates.append(
                        Candidate(
                            parent: one.number,
                            choice: number,
                            isUnderWay: choice.move == nil,
                            fingerprint: next.fingerprint,
                            situation: next
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
                    let isKept = shared.value.next.count < Explorer.keptWorlds
                    shared.value.next.append(Open(number: number, situation: isKept ? candidate.situation : nil))
                }
            }
        }

        /// The choices that lead to a state.
        func path(to number: Int) -> [Int] {
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

        private func situation(of number: Int) -> Situation {
            var situation = Situation(scope, mutation: mutation)
            for choice in path(to: number) { situation.take(situation.choices(scope)[choice]) }
            return situation
        }
    }
}
