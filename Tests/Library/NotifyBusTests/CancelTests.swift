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
    func `after cancel has returned no callback runs`(kind: BusKind) throws {
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
                    let observation = try center.addObserver(for: .name(name)) { _ in watch.call() }
                    for _ in 0..<Int.random(in: 0..<20, using: &generator) {
                        try center.post(names[Int.random(in: 0..<4, using: &generator)])
                    }
                    observation.cancel()
                    watch.isOver.store(true, ordering: .sequentiallyConsistent)
                    try center.post(name)
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

    @Test(.serialized, arguments: busKinds)
    func `callbacks in two threads that cancel each other's observations are stopped in a debug build`(
        kind: BusKind
    ) async throws {
        let bus = try PrivateBus(kind)
        try handOver(bus.address, to: "circle")
        let result = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            let address = try handedOver(to: "circle")
            func cancelInACircle() throws {
                // Each center has a thread of its own.
                let centers = [0, 1].map { _ in NotifyCenter(bus: .address(address)) }
                let observations = Recorder<NotifyCenter.Observation>()
                let (entered, left) = (Counter(), Counter())
                for (number, center) in centers.enumerated() {
                    observations.append(
                        try center.addObserver(for: "com.example.circle") { _ in
                            entered.add()
                            guard observations.wait(forCount: 2), entered.wait(for: 2) else { exit(0) }
                            observations.elements[1 - number].cancel()
                            left.add()
                        }
                    )
                }
                try centers[0].post("com.example.circle")
                // It is stopped long before.
                _ = left.wait(for: 2)
            }
            try cancelInACircle()
            exit(0)
        }
        let words = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(words.contains("cancel each other's observations"))
    }

    @Test(arguments: busKinds)
    func `callbacks that cancel observations one way round are not stopped`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let centers = (0..<3).map { _ in bus.makeCenter() }
        for _ in 0..<20 {
            let (observations, done) = (Recorder<NotifyCenter.Observation>(), Counter())
            for (number, center) in centers.enumerated() {
                observations.append(
                    try center.addObserver(for: "com.example.chain") { _ in
                        _ = observations.wait(forCount: 3)
                        // The last one cancels itself.
                        observations.elements[min(number + 1, 2)].cancel()
                        done.add()
                    }
                )
            }
            try centers[0].post("com.example.chain")
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
            try bus.makeCenter().addObserver(for: "com.example.slow") { _ in
                entered.add()
                _ = mayLeave.wait(for: 1, timeout: .patience)
                left.add()
            }
        }
        var observation: NotifyCenter.Observation? = try observe()
        for _ in 0..<3 { try poster.post("com.example.slow") }
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
    func `cancel waits for the callback that is running`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let (entered, mayLeave) = (Counter(), Counter())
        let watch = Watch()
        let observation = try center.addObserver(for: "com.example.slow") { _ in
            entered.add()
            _ = mayLeave.wait(for: 1)
            watch.call()
        }
        try center.post("com.example.slow")
        try #require(entered.wait(for: 1))
        let cancelled = Counter()
        startThread {
            observation.cancel()
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
        let observation = try center.addObserver(for: "com.example.first") { [weak center] _ in
            first.add()
            observations.withLock { $0.first }?.cancel()
            do {
                let next = try center?.addObserver(for: "com.example.second") { _ in second.add() }
                if let next { observations.withLock { $0.append(next) } }
                try center?.post("com.example.second")
                try center?.flush(timeout: .patience)
                try center?.synchronize(timeout: .patience)
            } catch {
                failures.append("\(error)")
            }
        }
        observations.withLock { $0.append(observation) }
        for _ in 0..<5 { try center.post("com.example.first") }
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
            let observation = try center.addObserver(for: "com.example.gone") { _ in count.add() }
            try center.post("com.example.gone")
            #expect(count.wait(for: 1))
            withExtendedLifetime(observation) {}
        }
        try center.post("com.example.gone")
        try center.synchronize(timeout: .patience)
        try center.barrier(timeout: .patience)
        #expect(count.value == 1)
    }

    @Test(arguments: busKinds)
    func `close ends everything, even from inside a callback`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let count = Counter()
        let observation = try center.addObserver(for: "com.example.close") { [weak center] _ in
            count.add()
            center?.close()
        }
        try center.post("com.example.close")
        #expect(count.wait(for: 1))
        #expect(throws: NotifyBusError.self) {
            while true { try center.post("com.example.close") }
        }
        let error = #expect(throws: NotifyBusError.self) {
            try center.addObserver(for: "com.example.close") { _ in }
        }
        #expect(error?.code == .closed)
        observation.cancel()
        #expect(count.value == 1)
    }
}
