// SPDX-License-Identifier: Apache-2.0

import NotifyNames
import TestSupport
import Testing

@testable import NotifyCoordinator

/// The state machine without a bus.
@Suite struct TransitionTests {
    /// Plays the other side of a transition at random, and records what matters.
    private struct World {
        var machine = Transition<Int>(.foreground)
        var queue: [Transition<Int>.Effect] = []
        var answered: [Int] = []
        var told: LifecycleState = .foreground
        var isProxied = false

        mutating func take(_ actions: [Transition<Int>.Effect]) {
            for action in actions {
                switch action {
                case .subscribe: isProxied = true
                case .unsubscribe: isProxied = false
                case .answer(let waiters, _): answered += waiters
                default: break
                }
                queue.append(action)
            }
        }

        /// The next request is carried out.
        mutating func step() {
            guard !queue.isEmpty else { return }
            switch queue.removeFirst() {
            case .subscribe: take(machine.namesAreSubscribed(nil))
            case .mark: machine.markIsReached()
            case .tell(let state):
                told = state
                take(machine.observerAnswered(nil))
            case .awaitHeldBack: take(machine.nothingIsHeldBack())
            default: break
            }
        }
    }

    @Test func `whatever is requested in whatever order, all requests are answered and the last is in force`() {
        var random = SeededGenerator(seed: 3)
        for _ in 0..<2_000 {
            var world = World()
            var last = LifecycleState.foreground
            let count = Int.random(in: 1...8, using: &random)
            for number in 0..<count {
                last = LifecycleState.allCases.randomElement(using: &random) ?? .foreground
                world.take(world.machine.want(last, by: [number]))
                for _ in 0..<Int.random(in: 0...4, using: &random) { world.step() }
            }
            while !world.queue.isEmpty { world.step() }
            #expect(world.answered.sorted() == Array(0..<count))
            #expect(world.machine.state == last && world.told == last && world.machine.isSettled)
            #expect(world.isProxied == (last == .suspended) && world.machine.isProxied == world.isProxied)
            #expect(world.machine.isCollecting == world.isProxied)
        }
    }

    @Test func `a failed take-over leaves the state unchanged`() {
        var machine = Transition<Int>(.foreground)
        _ = machine.want(.suspended, by: [1])
        let actions = machine.namesAreSubscribed("too many rules")
        guard case .answer([1], .failed("too many rules")) = actions.last else {
            Issue.record("\(actions)")
            return
        }
        #expect(machine.state == .foreground && machine.isSettled && !machine.isProxied)
    }

    @Test func `a caller that asks for what is under way shares its outcome`() {
        var machine = Transition<Int>(.foreground)
        _ = machine.want(.suspended, by: [1])
        #expect(machine.want(.suspended, by: [2]).isEmpty)
        guard case .answer([1, 2], .failed)? = machine.namesAreSubscribed("too many rules").last, machine.isSettled
        else {
            return #expect(Bool(false))
        }
    }

    @Test func `a caller that has been answered is not answered once more at the end`() {
        var machine = Transition<Int>(.foreground)
        _ = machine.want(.background, by: [1])
        guard case .answer([1], .inForce)? = machine.observerAnswered(nil).last, case .answer([], _)? = machine.end.last
        else { return #expect(Bool(false)) }
    }

    @Test func `the end of a connection answers everyone`() {
        var machine = Transition<Int>(.foreground)
        _ = machine.want(.background, by: [1])
        _ = machine.want(.suspended, by: [2])
        guard case .answer(let waiters, .inForce) = machine.end.first else {
            Issue.record("no answer")
            return
        }
        #expect(waiters == [1, 2])
    }

    @Test func `a caller that asked for the state of an entering connection is answered with it`() {
        var machine = Transition<Int>(.suspended, isProxied: true, isEntering: true)
        _ = machine.want(.suspended, by: [1])
        guard case .answer([1], .inForce)? = machine.entered(isInForce: true).first else {
            Issue.record("no answer")
            return
        }
        var other = Transition<Int>(.suspended, isProxied: true, isEntering: true)
        #expect(other.entered(isInForce: true).isEmpty)
    }
}
