// SPDX-License-Identifier: Apache-2.0

import NotifyNames
import TestSupport
import Testing

@testable import NotifyCoordinator

/// A start that never succeeds stops neither what is posted later nor other entries.
@Suite struct RefusedStartTests {
    static let outcomes: [Launcher.Outcome] = [.failed("no such unit"), .neverRan("no control group"), .canceled]

    @Test(arguments: outcomes)
    func `a start that is refused each time is given up after a few attempts, and each later post is a new one`(
        outcome: Launcher.Outcome
    ) {
        var world = LauncherWorld { $0.limit = .init(starts: 1_000, window: 1_000) }
        for round in 1...3 {
            world.post()
            let before = world.starts.count
            while world.state == "starting", world.starts.count < before + 20 { world.end(outcome) }
            #expect(world.state == "idle" && world.starts.count < before + 5)
            #expect(world.complaints.count == round)
        }
        world.post()
        world.runThrough()
        #expect(world.state == "idle" && world.complaints.count == 3)
    }

    @Test(arguments: outcomes)
    func `what others are started for does not wait for a start that is refused`(outcome: Launcher.Outcome) {
        var launcher = Launcher()
        func entry(_ title: String) -> LaunchEntry {
            var entry = LaunchEntry(title: title, action: .unit(title + ".service"))
            entry.subjects.names = [LauncherWorld.name]
            return entry
        }
        var (events, starts): ([Launcher.Event], [String: Int]) = ([], [:])
        func run(_ event: Launcher.Event) {
            events = [event]
            while !events.isEmpty {
                for effect in launcher.handle(events.removeFirst(), at: Timestamp(nanoseconds: 0)) {
                    switch effect {
                    case .subscribe(let id, _): events.append(.subscribed(id, failure: nil))
                    case .attach(let id, _): events.append(.activity(id, false))
                    case .start(let id, let number, let entry, _, _):
                        starts[entry.title, default: 0] += 1
                        if entry.title == "refused" { events.append(.ended(id, number: number, outcome)) }
                    default: break
                    }
                }
            }
        }
        run(.manager(obstacle: nil))
        run(.load([entry("refused"), entry("other")]))
        run(.heard(LauncherWorld.name, launcher.entries(for: LauncherWorld.name).map(\.0)))
        #expect(starts["other"] == 1)
        #expect((starts["refused"] ?? 0) < 5, "\(starts)")
    }
}
