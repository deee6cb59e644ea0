// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyBus
import Synchronization
import TestSupport
import Testing

@Suite struct CancelTests {
    /// Whether a callback may run, and how often one ran that must not.
    private final class Watch: Sendable {
        let isOver = Atomic(false)
        let calls = Atomic(0)
        let violations = Atomic(0)

        func call() {
            if isOver.load(ordering: .sequentiallyConsistent) { violations.add(1, ordering: .relaxed) }
            calls.add(1, ordering: .relaxed)
        }
    }

    @Test(arguments: busKinds)
    func `after cancelAndWait has returned no callback runs`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let names = try (0..<4).map { try NotifyName("com.example.cancel.\($0)") }
        let failures = Recorder<String>()
        let calls = Counter()
        concurrently(8) { number in
            var generator = SeededGenerator(seed: UInt64(number))
            do {
                for _ in 0..<60 {
                    let watch = Watch()
                    let name = names[Int.random(in: 0..<4, using: &generator)]
                    let observation = try center.addObserver(for: name, timeout: .seconds(25)) { _ in watch.call() }
                    for _ in 0..<Int.random(in: 0..<20, using: &generator) {
                        try center.postOnceConnected(names[Int.random(in: 0..<4, using: &generator)])
                    }
                    try observation.cancelAndWait(timeout: nil)
                    watch.isOver.store(true, ordering: .sequentiallyConsistent)
                    try center.postOnceConnected(name)
                    if Bool.random(using: &generator) { try center.barrier(timeout: .patience) }
                    if watch.violations.load(ordering: .relaxed) > 0 { failures.append("called after cancel") }
                    calls.add(watch.calls.load(ordering: .relaxed))
                }
            } catch {
                failures.append("\(error)")
            }
        }
        #expect(failures.elements == [])
        #expect(calls.value > 0)
    }

    @Test(arguments: busKinds)
    func `cancel returns while the callback runs, and none begins after it`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let (entered, mayLeave, left) = (Counter(), Counter(), Counter())
        let observation = try center.addObserver(for: "com.example.slow", timeout: .seconds(25)) { _ in
            entered.add()
            _ = mayLeave.wait(for: 1, timeout: .patience)
            left.add()
        }
        for _ in 0..<3 { try center.postOnceConnected("com.example.slow") }
        try #require(entered.wait(for: 1))
        observation.cancel()
        #expect(left.value == 0)
        mayLeave.add()
        try #require(left.wait(for: 1))
        try center.synchronize(timeout: .patience)
        try center.barrier(timeout: .patience)
        #expect(entered.value == 1)
    }

    /// How callbacks end each other.
    enum Ending: CaseIterable { case observation, center }

    /// Each waits for the next one's end, the last for the first one's. Each center has a thread of its own.
    @Test(arguments: busKinds, Ending.allCases)
    func `of callbacks that wait for each other's end one learns of it, and all return`(
        kind: BusKind,
        ending: Ending
    ) throws {
        let bus = try PrivateBus(kind)
        for count in 2...3 {
            let centers = (0..<count).map { _ in bus.makeCenter() }
            let observations = Recorder<NotifyCenter.Observation>()
            let (entered, left, codes) = (Counter(), Counter(), Recorder<NotifyBusError.Code>())
            for (number, center) in centers.enumerated() {
                observations.append(
                    try center.addObserver(for: "com.example.circle", timeout: .seconds(25)) { _ in
                        entered.add()
                        guard observations.wait(forCount: count), entered.wait(for: count) else { return }
                        let next = (number + 1) % count
                        do throws(NotifyBusError) {
                            switch ending {
                            case .observation: try observations.elements[next].cancelAndWait(timeout: nil)
                            case .center: try centers[next].close(timeout: nil)
                            }
                        } catch {
                            codes.append(error.code)
                        }
                        left.add()
                    }
                )
            }
            try bus.makeCenter().postOnceConnected("com.example.circle")
            try #require(left.wait(for: count, timeout: .patience))
            #expect(codes.elements == [.deadlock])
            observations.elements.forEach { $0.cancel() }
        }
    }

    @Test(arguments: busKinds)
    func `a wait for a callback ends in time, and the callback is the last`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let centers = [bus.makeCenter(), bus.makeCenter()]
        let (entered, mayLeave) = (Counter(), Counter())
        let observations = try centers.map { center in
            try center.addObserver(for: "com.example.slow", timeout: .seconds(25)) { _ in
                entered.add()
                _ = mayLeave.wait(for: 1, timeout: .patience)
            }
        }
        for _ in 0..<2 { try centers[0].postOnceConnected("com.example.slow") }
        try #require(entered.wait(for: 2))
        let ends: [() throws -> Void] = [
            { try observations[0].cancelAndWait(timeout: .milliseconds(10)) },
            { try centers[1].close(timeout: .milliseconds(10)) },
        ]
        for end in ends {
            let error = #expect(throws: NotifyBusError.self) { try end() }
            #expect(error?.code == .timedOut)
        }
        mayLeave.add()
        for observation in observations { try observation.cancelAndWait(timeout: .patience) }
        try centers[0].synchronize(timeout: .patience)
        try centers[0].barrier(timeout: .patience)
        #expect(entered.value == 2)
    }

    @Test(arguments: busKinds)
    func `callbacks that wait for each other one way round all end`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let centers = (0..<3).map { _ in bus.makeCenter() }
        for _ in 0..<20 {
            let (observations, done) = (Recorder<NotifyCenter.Observation>(), Counter())
            for (number, center) in centers.enumerated() {
                observations.append(
                    try center.addObserver(for: "com.example.chain", timeout: .seconds(25)) { _ in
                        _ = observations.wait(forCount: 3)
                        // The last one cancels itself.
                        try? observations.elements[min(number + 1, 2)].cancelAndWait(timeout: nil)
                        done.add()
                    }
                )
            }
            try centers[0].postOnceConnected("com.example.chain")
            // Each of the others runs, or was cancelled before it could.
            try #require(done.wait(for: 1))
            observations.elements.forEach { $0.cancel() }
        }
    }

    @Test(arguments: busKinds)
    func `releasing an observation and its center waits for no callback`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let poster = bus.makeCenter()
        let (entered, mayLeave, left) = (Counter(), Counter(), Counter())
        func observe() throws -> NotifyCenter.Observation {
            // Only the observation keeps the center alive.
            try bus.makeCenter().addObserver(for: "com.example.slow", timeout: .seconds(25)) { _ in
                entered.add()
                _ = mayLeave.wait(for: 1, timeout: .patience)
                left.add()
            }
        }
        var observation: NotifyCenter.Observation? = try observe()
        for _ in 0..<3 { try poster.postOnceConnected("com.example.slow") }
        try #require(entered.wait(for: 1))
        observation = nil
        #expect(observation == nil && left.value == 0)
        mayLeave.add()
        #expect(left.wait(for: 1))
        // The two queued ones were not delivered.
        try poster.synchronize(timeout: .patience)
        #expect(entered.value == 1)
    }

    @Test(arguments: busKinds)
    func `cancelAndWait waits for the callback that is running`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let (entered, mayLeave) = (Counter(), Counter())
        let watch = Watch()
        let observation = try center.addObserver(for: "com.example.slow", timeout: .seconds(25)) { _ in
            entered.add()
            _ = mayLeave.wait(for: 1)
            watch.call()
        }
        try center.postOnceConnected("com.example.slow")
        try #require(entered.wait(for: 1))
        let cancelled = Counter()
        startThread {
            try? observation.cancelAndWait(timeout: nil)
            watch.isOver.store(true, ordering: .sequentiallyConsistent)
            cancelled.add()
        }
        mayLeave.add()
        #expect(cancelled.wait(for: 1))
        #expect(watch.calls.load(ordering: .relaxed) == 1)
        #expect(watch.violations.load(ordering: .relaxed) == 0)
    }

    @Test(arguments: busKinds)
    func `a callback may cancel its own observation, and add another`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let (first, second) = (Counter(), Counter())
        let observations = Mutex<[NotifyCenter.Observation]>([])
        let failures = Recorder<String>()
        let observation = try center.addObserver(for: "com.example.first", timeout: .seconds(25)) { [weak center] _ in
            first.add()
            observations.withLock { $0.first }?.cancel()
            do {
                let next = try center?.addObserver(for: "com.example.second", timeout: .seconds(25)) { _ in second.add()
                }
                if let next { observations.withLock { $0.append(next) } }
                try center?.postOnceConnected("com.example.second")
                try center?.flush(timeout: .patience)
                try center?.synchronize(timeout: .patience)
            } catch {
                failures.append("\(error)")
            }
        }
        observations.withLock { $0.append(observation) }
        for _ in 0..<5 { try center.postOnceConnected("com.example.first") }
        #expect(second.wait(for: 1))
        try center.barrier(timeout: .patience)
        #expect(first.value == 1)
        #expect(failures.elements == [])
        observations.withLock { $0.removeAll() }
    }

    @Test(arguments: busKinds)
    func `an observation that is released is cancelled`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let count = Counter()
        do {
            let observation = try center.addObserver(for: "com.example.gone", timeout: .seconds(25)) { _ in count.add()
            }
            try center.postOnceConnected("com.example.gone")
            #expect(count.wait(for: 1))
            withExtendedLifetime(observation) {}
        }
        try center.postOnceConnected("com.example.gone")
        try center.synchronize(timeout: .patience)
        try center.barrier(timeout: .patience)
        #expect(count.value == 1)
    }

    @Test(arguments: busKinds)
    func `close ends everything, even from inside a callback`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let count = Counter()
        let observation = try center.addObserver(for: "com.example.close", timeout: .seconds(25)) { [weak center] _ in
            count.add()
            try? center?.close(timeout: nil)
        }
        try center.postOnceConnected("com.example.close")
        #expect(count.wait(for: 1))
        #expect(throws: NotifyBusError.self) {
            while true { try center.postOnceConnected("com.example.close") }
        }
        let error = #expect(throws: NotifyBusError.self) {
            try center.addObserver(for: "com.example.close", timeout: .seconds(25)) { _ in }
        }
        #expect(error?.code == .closed)
        observation.cancel()
        #expect(count.value == 1)
    }
}
