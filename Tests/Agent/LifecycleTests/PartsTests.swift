// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// Work that the agent or a program does in parts: no observer misses a post between two parts.
@Suite struct PartsTests {
    /// A program of one process has so many calls under way at once. See `CallWindow.share`.
    private static let share = 8

    /// Posts names of a prefix, one after the other, until it is stopped.
    private final class Storm: Sendable {
        private let isToEnd = Counter()
        private let hasEnded = Counter()
        let posted = Recorder<String>()

        init(_ poster: NotifyCenter, prefix: String) {
            startThread { [isToEnd, hasEnded, posted] in
                // Each connection of the user may have all of them pending, within its quota.
                while isToEnd.value == 0, posted.count < 4_000 {
                    guard let name = try? NotifyName("\(prefix)\(posted.count)"),
                        (try? poster.postOnceConnected(name)) != nil
                    else {
                        break
                    }
                    posted.append(name.string)
                    usleep(500)
                }
                hasEnded.add()
            }
        }

        func end() throws {
            isToEnd.add()
            try #require(hasEnded.wait(for: 1, timeout: .patience))
        }
    }

    /// Calls to observers wait for each other, and calls of the agent are handled for a moment at a time.
    @Test(arguments: busKinds)
    func `while many connections change one after the other, and others call the agent, no post is lost`(kind: BusKind)
        throws
    {
        let agent = try AgentBus(kind)
        let poster = agent.makeCenter()
        let count = 3 * Self.share + 1
        let heard = (0..<count).map { _ in Recorder<String>() }
        let centers = heard.map { _ in agent.makeCenter() }
        let prefix = "com.example.parts."
        let observations = try zip(centers, heard).map { center, heard in
            try center.addObserver(matching: .prefix(prefix), timeout: .seconds(25)) {
                heard.append($0.string)
            }
        }
        for center in centers { try center.barrier(timeout: .patience) }
        let (isDone, lists) = (Counter(), Counter())
        for _ in 0..<3 {
            startThread {
                while isDone.value == 0 { _ = try? agent.list() }
                lists.add()
            }
        }
        let storm = Storm(poster, prefix: prefix)
        for _ in 0..<(isLongRun ? 100 : 5) {
            try agent.set("pid:\(getpid())", .suspended)
            try agent.set("pid:\(getpid())", .foreground)
        }
        try storm.end()
        isDone.add()
        try #require(lists.wait(for: 3, timeout: .patience))
        try poster.postOnceConnected(NotifyName(prefix + "last"))
        let expected = Set(storm.posted.elements + [prefix + "last"])
        for heard in heard {
            let isComplete = waitUntil(timeout: .patience) { expected.isSubset(of: heard.elements) }
            #expect(isComplete, "\(expected.subtracting(heard.elements).count) posts are lost")
            #expect(Set(heard.elements).subtracting(expected) == [])
        }
        for observation in observations { observation.cancel() }
    }

    /// While a program is suspended, additions are reported in parts: the agent refuses a connection that has too many calls
    /// pending.
    @Test(arguments: busKinds, [true, false])
    func `names that a program adds while it is suspended, or is being suspended, are all heard`(
        kind: BusKind,
        isSuspended: Bool
    ) throws {
        let agent = try AgentBus(kind)
        let poster = agent.makeCenter()
        let center = agent.makeCenter()
        let heard = Recorder<String>()
        let first = try center.addObserver(for: "com.example.first", timeout: .seconds(25)) { _ in }
        let name = try center.observingName()
        // Which additions come while it is being suspended is different each time.
        for round in 0..<(isSuspended && !isLongRun ? 1 : 3) {
            let names = try (0..<3 * 1_024 + 1).map { try NotifyName("com.example.part.\(round).\($0)") }
            let finished = Counter()
            if isSuspended { try agent.set(name, .suspended) }
            startThread {
                if !isSuspended { try? agent.set(name, .suspended) }
                finished.add()
            }
            let observation = try center.addObserver(matching: .names(names), timeout: .seconds(25)) {
                heard.append($0.string)
            }
            for new in names { try poster.postOnceConnected(new) }
            try poster.synchronize(timeout: .patience)
            try #require(finished.wait(for: 1, timeout: .patience))
            try agent.set(name, .foreground)
            let expected = Set(names.map(\.string))
            let isComplete = waitUntil(timeout: .patience) { expected.isSubset(of: heard.elements) }
            #expect(isComplete, "\(expected.subtracting(heard.elements).count) posts are lost")
            observation.cancel()
        }
        first.cancel()
    }
}
