// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyBus
import TestSupport
import Testing

/// What the agent or a program does a part at a time: nobody misses what is posted between two parts.
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
                while isToEnd.value == 0 {
                    guard let name = try? NotifyName("\(prefix)\(posted.count)"), (try? poster.post(name)) != nil else {
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
            try center.addObserver(for: .prefix(prefix)) { heard.append($0.string) }
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
        try poster.post(NotifyName(prefix + "last"))
        let expected = Set(storm.posted.elements + [prefix + "last"])
        for heard in heard {
            let isComplete = waitUntil(timeout: .patience) { expected.isSubset(of: heard.elements) }
            #expect(isComplete, "\(expected.subtracting(heard.elements).count) posts are lost")
            #expect(Set(heard.elements).subtracting(expected) == [])
        }
        for observation in observations { observation.cancel() }
    }
}
