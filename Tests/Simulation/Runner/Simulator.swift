// SPDX-License-Identifier: Apache-2.0

import Glibc
import Simulation
import Synchronization

/// `simulate`: runs histories of the lifecycle protocol by seed, on all processors.
enum Simulator {
    private static let usage = """
        Usage: simulate [--count N] [--first SEED] [--threads N] [--mutation NAME | --mutations] [--seed SEED]
               simulate --all | --quick | --small | --scope NAME
                        [--limit STATES] [--depth-first] [--threads N] [--mutation NAME | --mutations]

        """

    private struct Options {
        var count: UInt64 = 100_000
        var first: UInt64 = 1
        var threads = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
        var mutation: Mutation?
        var triesMutations = false
        var seed: UInt64?
        /// How large the scopes are that are explored.
        var size: Scope.Size?
        var scope: Scope?
        /// How many states of a scope are explored at most.
        var limit = 20_000_000
        /// Finds some breaks sooner, if not with the shortest history.
        var isDepthFirst = false

        func explore(_ scope: Scope, _ mutation: Mutation?) -> Explorer.Outcome {
            scope.explore(mutation, limit: limit, threads: Int(threads), isDepthFirst: isDepthFirst)
        }
    }

    static func run(_ arguments: [String]) -> Int32 {
        guard let options = parse(arguments) else {
            print(usage, terminator: "")
            return 2
        }
        if options.size != nil || options.scope != nil { return explore(options) }
        if options.triesMutations { return tryMutations(options) }
        if let seed = options.seed {
            let history = History.run(seed: seed, mutation: options.mutation, isKept: true)
            guard history.failure != nil || SceneHistory.failing(seed: seed, mutation: options.mutation) != nil else {
                print("seed \(seed): every promise was kept, in \(history.stepsTaken) steps")
                return 0
            }
            report(seed, options.mutation)
            return 1
        }
        let outcome = search(options, mutation: options.mutation)
        if let seed = outcome.failed {
            report(seed, options.mutation)
            return 1
        }
        print(
            "\(options.count) histories from seed \(options.first) on: \(outcome.steps) steps, \(outcome.checks) checks, "
                + "\(outcome.milliseconds / 1_000).\(outcome.milliseconds / 100 % 10) s"
        )
        for row in Row.allCases { print("  \(pad(outcome.tolerated[row.rawValue])) \(row.title)") }
        for excess in Excess.allCases { print("  \(pad(outcome.exceeded[excess.rawValue])) \(excess.title)") }
        return 0
    }

    private static func pad(_ number: Int) -> String {
        let text = String(number)
        return String(repeating: " ", count: max(0, 12 - text.count)) + text
    }

    private static let sizes: [String: Scope.Size] = ["--all": .large, "--quick": .medium, "--small": .small]

    private static func parse(_ arguments: [String]) -> Options? {
        var options = Options()
        var rest = arguments[...]
        while let name = rest.popFirst() {
            if name == "--mutations" {
                options.triesMutations = true
                continue
            }
            if name == "--depth-first" {
                options.isDepthFirst = true
                continue
            }
            if let size = sizes[name] {
                options.size = size
                continue
            }
            guard let value = rest.popFirst() else { return nil }
            switch name {
            case "--count": if let number = UInt64(value) { options.count = number } else { return nil }
            case "--first": if let number = UInt64(value) { options.first = number } else { return nil }
            case "--seed": if let number = UInt64(value) { options.seed = number } else { return nil }
            case "--limit": if let number = Int(value) { options.limit = number } else { return nil }
            case "--scope":
                guard let found = Scope.all.first(where: { $0.name == value }) else { return nil }
                options.scope = found
            case "--threads": if let number = Int(value), number > 0 { options.threads = number } else { return nil }
            case "--mutation":
                guard let found = Mutation.allCases.first(where: { "\($0)" == value }) else { return nil }
                options.mutation = found
            default: return nil
            }
        }
        return options
    }

    // MARK: - Exploring

    private static func explore(_ options: Options) -> Int32 {
        var isRight = true
        let scopes = (options.scope.map { [$0] } ?? Scope.all)
            .filter { $0.size.rawValue <= (options.size ?? .large).rawValue }
            .sorted { $0.size.rawValue < $1.size.rawValue }
        if options.triesMutations {
            for mutation in Mutation.allCases where !find(mutation, in: scopes, options) { isRight = false }
            return isRight ? 0 : 1
        }
        for scope in scopes {
            let outcome = options.explore(scope, options.mutation)
            print(
                "\(left(scope.name, 20))\(pad(outcome.states)) states\(pad(outcome.transitions)) transitions"
                    + (options.isDepthFirst ? "" : "  depth \(outcome.depth)")
                    + "  \(tenths(outcome.seconds)) s  \(outcome.memory >> 20) MB  \(scope.summary)"
            )
            fflush(nil)
            if let failure = outcome.failure {
                print("in \(failure.length) steps: \(failure.text)")
                for line in failure.transcript { print("  \(line)") }
                isRight = false
            } else if !outcome.isComplete {
                print("has more than \(options.limit) states")
                isRight = false
            }
        }
        return isRight ? 0 : 1
    }

    /// Looks for a break of the protocol, first in the scope that is known to show it.
    ///
    /// It prints a row of a table: the break, the scope, the length of the shortest history that shows it, and what is wrong.
    private static func find(_ mutation: Mutation, in scopes: [Scope], _ options: Options) -> Bool {
        let known = scopes.filter { $0.name == Scope.showing[mutation] }
        for scope in known + scopes.filter({ $0.name != Scope.showing[mutation] }) {
            let outcome = options.explore(scope, mutation)
            guard let failure = outcome.failure else { continue }
            print("| `\(mutation)` | \(scope.name) | \(failure.length) | \(failure.text) |")
            fflush(nil)
            return true
        }
        print("\(mutation): NOT FOUND")
        return false
    }

    private static func left(_ text: String, _ width: Int) -> String {
        text + String(repeating: " ", count: max(1, width - text.count))
    }

    private static func tenths(_ seconds: Double) -> String {
        let tenths = Int(seconds * 10)
        return "\(tenths / 10).\(tenths % 10)"
    }

    // MARK: - Searching

    private struct Outcome {
        var failed: UInt64?
        var steps = 0
        var checks = 0
        var tolerated = [Int](repeating: 0, count: Row.allCases.count)
        var exceeded = [Int](repeating: 0, count: Excess.allCases.count)
        var milliseconds = 0
    }

    private static func search(_ options: Options, mutation: Mutation?) -> Outcome {
        let next = Atomic<UInt64>(options.first)
        let failed = Atomic<Int>(.max)
        let end = options.first + options.count
        let sum = Mutex(Outcome())
        let clock = ContinuousClock()
        let duration = clock.measure {
            Threads.run(options.threads) {
                var own = Outcome()
                while true {
                    let begin = next.wrappingAdd(64, ordering: .relaxed).oldValue
                    if begin >= end || begin > UInt64(failed.load(ordering: .relaxed)) { break }
                    for seed in begin..<min(begin + 64, end) {
                        let history = History.run(seed: seed, mutation: mutation)
                        own.steps += history.stepsTaken
                        own.checks += history.checks
                        for row in own.tolerated.indices { own.tolerated[row] += history.tolerated[row] }
                        for excess in own.exceeded.indices { own.exceeded[excess] += history.exceeded[excess] }
                        if history.failure != nil || SceneHistory.failing(seed: seed, mutation: mutation) != nil {
                            failed.min(Int(seed), ordering: .relaxed)
                            break
                        }
                    }
                }
                sum.withLock { sum in
                    sum.steps += own.steps
                    sum.checks += own.checks
                    for row in own.tolerated.indices { sum.tolerated[row] += own.tolerated[row] }
                    for excess in own.exceeded.indices { sum.exceeded[excess] += own.exceeded[excess] }
                }
            }
        }
        var outcome = sum.withLock { $0 }
        let seed = failed.load(ordering: .relaxed)
        outcome.failed = seed == .max ? nil : UInt64(seed)
        outcome.milliseconds = Int(
            duration.components.seconds * 1_000 + duration.components.attoseconds / 1_000_000_000_000_000
        )
        return outcome
    }

    private static func report(_ seed: UInt64, _ mutation: Mutation?) {
        if let scene = SceneHistory.failing(seed: seed, mutation: mutation, isNoted: true) {
            print("seed \(seed), \(scene.title): \(scene.failure)")
            print("in \(scene.steps) steps; in \(scene.steps): \(scene.failure)")
            for line in scene.notes { print("  \(line)") }
            return
        }
        let history = History.run(seed: seed, mutation: mutation, isKept: true)
        guard let failure = history.failure else { return print("seed \(seed) failed, but not when it was run again") }
        let short = history.shortened(mutation: mutation)
        print("seed \(seed): \(failure)")
        print("in \(history.steps.count) steps; in \(short.steps.count): \(short.failure ?? "")")
        print("processes of the observers: \(short.setting.processes), registrations: \(short.setting.registrations)")
        for line in short.transcript(mutation: mutation) { print("  \(line)") }
    }

    /// Breaks each promise once, and checks that this is found.
    private static func tryMutations(_ options: Options) -> Int32 {
        var isComplete = true
        for mutation in Mutation.allCases {
            let outcome = search(options, mutation: mutation)
            if let seed = outcome.failed {
                if let scene = SceneHistory.failing(seed: seed, mutation: mutation) {
                    print("\(mutation): seed \(seed), \(scene.steps) steps: \(scene.failure)")
                    continue
                }
                let history = History.run(seed: seed, mutation: mutation, isKept: true)
                let short = history.shortened(mutation: mutation)
                print("\(mutation): seed \(seed), \(short.steps.count) steps: \(short.failure ?? "")")
            } else {
                isComplete = false
                print("\(mutation): NOT FOUND in \(options.count) histories")
            }
        }
        return isComplete ? 0 : 1
    }
}
