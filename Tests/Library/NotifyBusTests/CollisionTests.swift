// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyNames
import TestSupport
import Testing

@testable import NotifyCore

/// Names made to collide in the wire format's hash. Comparing all of them with each other would cost a thousand times
/// as much.
@Suite(.serialized) struct CollisionTests {
    /// Ordinary names of the same length.
    private static let others = collidingNames.indices.map { number in
        let digits = String(number)
        return digits + String(repeating: "x", count: collidingNames[number].utf8.count - digits.utf8.count)
    }

    /// The processor time of this thread, in seconds.
    private func time(_ body: () throws -> Void) rethrows -> Double {
        func now() -> Double {
            var time = timespec()
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
            return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
        }
        let start = now()
        try body()
        return now() - start
    }

    @Test func `the names collide`() throws {
        #expect(Set(collidingNames).count == 65_536)
        #expect(Set(try collidingNames.map { try NotifyName($0).storage.hash }).count == 1)
        #expect(Set(try CollisionTests.others.map { try NotifyName($0).storage.hash }).count == 65_536)
    }

    @Test func `colliding names cost a set no more than others`() throws {
        func cost(_ texts: [String]) throws -> Double {
            let names = try texts.map { try NotifyName($0) }
            return time {
                var set = Set(names)
                for name in names { set.remove(name) }
                #expect(set.isEmpty)
            }
        }
        #expect(try cost(collidingNames) < 100 * cost(CollisionTests.others))
    }

    @Test func `colliding names are distinguished, and cost an observer's table no more`()
        throws
    {
        func cost(_ texts: [String]) throws -> Double {
            let names = try texts.prefix(16_384).map { try NotifyName($0) }
            let observers = names.map { _ in
                Observer(runner: .client(SilentClient()), counters: Counters(), callback: { _ in })
            }
            return time {
                var table = TopicTable()
                for (name, observer) in zip(names, observers) { _ = table.add(observer, to: .name(name)) }
                #expect(table.nameCount == names.count)
                for (name, observer) in zip(names, observers) {
                    var text = name.string
                    let topic = text.withUTF8 { bytes in
                        let bytes = UnsafeRawBufferPointer(bytes)
                        return table.topic(named: bytes, hash: fnv1a64(bytes))
                    }
                    guard topic?.audience.observers.first === observer, topic?.audience.observers.count == 1 else {
                        Issue.record("\(name) leads to another's observer")
                        return
                    }
                }
                // Every second one is removed, including the first; the rest are found as before.
                for index in stride(from: 0, to: names.count, by: 2) {
                    guard let topic = table.find(.name(names[index])), table.remove(observers[index], from: topic)
                    else {
                        Issue.record("\(names[index]) is not to be found")
                        return
                    }
                }
                for index in names.indices {
                    let found = table.audience(of: names[index]).observers
                    guard found.count == index % 2, found.first === (index % 2 == 1 ? observers[index] : nil) else {
                        Issue.record("\(names[index]) leads to \(found.count) observers")
                        return
                    }
                }
                var count = 0
                table.forEach { _ in count += 1 }
                #expect(count == names.count / 2 && table.nameCount == count)
            }
        }
        #expect(try cost(collidingNames) < 100 * cost(CollisionTests.others))
    }

    @Test func `colliding names coexist in the cache of names`() {
        var cache = NameCache()
        func find(_ text: String) -> NotifyName.Storage? {
            var text = text
            return text.withUTF8 { cache.find(UnsafeRawBufferPointer($0))?.storage }
        }
        let texts = collidingNames[..<1_000]
        let made = texts.map { find($0) }
        for (text, storage) in zip(texts, made) {
            #expect(storage?.string == text && find(text) === storage)
        }
    }

    private final class SilentClient: ObserverClient, Sendable {
        func wake(for observer: Observer) {}
        func end() {}
    }
}
