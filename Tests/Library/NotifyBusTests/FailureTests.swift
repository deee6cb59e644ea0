// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import NotifyBus
import TestSupport
import Testing

@Suite struct FailureTests {
    @Test func `a missing bus is an error with a sentence, for posters and observers`() throws {
        let addresses = [
            ("unix:path=/nonexistent/bus", "The bus at 'unix:path=/nonexistent/bus' cannot be reached: "),
            ("nonsense", "The bus at 'nonsense' cannot be reached: "),
            ("", "The bus at '' cannot be reached: "),
        ]
        for (address, beginning) in addresses {
            let center = NotifyCenter(bus: .address(address))
            for attempt in [
                { try center.postOnceConnected("com.example.x") },
                { _ = try center.addObserver(for: "com.example.x", timeout: .seconds(25)) { _ in } },
                { try center.synchronize(timeout: nil) },
            ] as [() throws -> Void] {
                let error = try #require(throws: NotifyBusError.self) { try attempt() }
                #expect(error.code == .noBus)
                #expect(error.description.hasPrefix(beginning), "\(error)")
            }
            #expect(center.statistics.posted == 0)
        }
    }

    @Test(arguments: busKinds)
    func `a center that found no bus finds it once it is available`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        bus.kill()
        let center = bus.makeCenter()
        #expect(throws: NotifyBusError.self) {
            try center.addObserver(for: "com.example.x", timeout: .seconds(25)) { _ in }
        }
        #expect(throws: NotifyBusError.self) { try center.postOnceConnected("com.example.x") }
        try bus.restart()
        let count = Counter()
        let observation = try center.addObserver(for: "com.example.x", timeout: .seconds(25)) { _ in count.add() }
        try center.postOnceConnected("com.example.x")
        #expect(count.wait(for: 1))
        observation.cancel()
    }

    @Test(arguments: busKinds)
    func `synchronize and barrier give up in time on a bus that does not answer`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let observation = try center.addObserver(for: "com.example.x", timeout: .seconds(25)) { _ in }
        try center.postOnceConnected("com.example.x")
        bus.stop()
        for attempt in [
            { try center.synchronize(timeout: .milliseconds(50)) },
            { try center.barrier(timeout: .milliseconds(50)) },
        ] as [() throws -> Void] {
            let error = try #require(throws: NotifyBusError.self) { try attempt() }
            #expect(error.code == .timedOut)
        }
        bus.resume()
        try center.synchronize(timeout: .patience)
        observation.cancel()
    }

    @Test(.enabled(if: geteuid() == 0, "needs root, to become somebody else"))
    func `names of other users cannot be posted`() async throws {
        await #expect(processExitsWith: .success) {
            guard seteuid(65_534) == 0 else { exit(2) }
            let system = NotifyCenter(bus: .system)
            let session = NotifyCenter(bus: .address("unix:path=/nonexistent"))
            var codes: [NotifyBusError.Code] = []
            for (center, name) in [
                (system, "com.apple.system.clock"), (session, "user.uid.0.x"), (session, "user.uid.x"),
                (system, "org.notifybus.system.willsleep"), (session, "user.uid.65534"),
            ] {
                do throws(NotifyBusError) { try center.postOnceConnected(NotifyName(name)) } catch {
                    codes.append(error.code)
                }
            }
            // The user's own name gets as far as the missing bus.
            exit(codes == [.notPermitted, .notPermitted, .notPermitted, .notPermitted, .noBus] ? 0 : 1)
        }
    }

    @Test(.serialized, arguments: busKinds)
    func `a thousand centers leave no descriptor, thread or memory behind`(kind: BusKind) async throws {
        let bus = try PrivateBus(kind)
        // In a process of its own, so that other tests don't affect the count.
        try handOver(bus.address, to: "thousand-centers")
        let result = await #expect(
            processExitsWith: .success,
            observing: [\.standardOutputContent]
        ) {
            let address = try handedOver(to: "thousand-centers")
            func useCenters(_ count: Int) throws {
                for _ in 0..<count {
                    let center = NotifyCenter(bus: .address(address))
                    let heard = Counter()
                    let observation = try center.addObserver(for: "com.example.leak", timeout: .seconds(25)) { _ in
                        heard.add()
                    }
                    let prefix = try center.addObserver(matching: .prefix("com.example."), timeout: .seconds(25)) { _ in
                        heard.add()
                    }
                    let queued = try center.addObserver(
                        for: "com.example.leak",
                        queue: .global(qos: .utility),
                        timeout: .seconds(25)
                    ) { _ in }
                    try center.postOnceConnected("com.example.leak")
                    guard heard.wait(for: 2) else { exit(3) }
                    observation.cancel()
                    withExtendedLifetime((prefix, queued)) {}
                }
            }
            do {
                let threads = threadCount(of: getpid())
                try useCenters(100)
                // Releasing a center doesn't wait for its threads, which close its descriptors.
                _ = waitUntil { threadCount(of: getpid()) <= threads }
                let before = (openDescriptors(of: getpid()), threadCount(of: getpid()), heapBytesInUse() ?? 0)
                try useCenters(1_000)
                _ = waitUntil { threadCount(of: getpid()) <= before.1 && openDescriptors(of: getpid()) <= before.0 }
                let after = (openDescriptors(of: getpid()), threadCount(of: getpid()), heapBytesInUse() ?? 0)
                print(after.0 - before.0, after.1 - before.1, after.2 - before.2)
            } catch {
                print(error)
                exit(4)
            }
        }
        let report = result.map { String(decoding: $0.standardOutputContent, as: UTF8.self) } ?? ""
        let growth = report.split { $0.isWhitespace }.compactMap { Int($0) }
        try #require(growth.count == 3, "\(report)")
        // Fewer if the last center of the first hundred was still closing its own.
        #expect(growth[0] <= 0, "descriptors")
        #expect(growth[1] <= 0, "threads")
        // 100 bytes per center allow for the allocator's rounding, but not for anything that a center owns.
        #expect(growth[2] < 100_000, "bytes on the heap")
    }
}
