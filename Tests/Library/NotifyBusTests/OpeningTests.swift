// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyBus
import NotifyCore
import TestSupport
import Testing

private typealias NotifyCenter = NotifyBus.NotifyCenter
private typealias NotifyName = NotifyBus.NotifyName
private typealias NotifyBusError = NotifyBus.NotifyBusError

/// The promises while a connection is opened, especially with a hanging bus.
@Suite struct OpeningTests {
    @Test func `a first post that waits for a hanging bus holds nobody else up`() throws {
        let bus = try HangingBus()
        let center = NotifyCenter(bus: .address(bus.address))
        let isLate = lateness()
        let (begun, ended) = (Counter(), Recorder<NotifyBusError?>())
        startThread {
            begun.add()
            do throws(NotifyBusError) {
                try center.postOnceConnected("com.example.first")
                ended.append(nil)
            } catch {
                ended.append(error)
            }
        }
        try #require(begun.wait(for: 1))
        for _ in 0..<5 {
            #expect(center.statistics.posted == 0)
            try center.flush(timeout: .milliseconds(10))
            let error = #expect(throws: NotifyBusError.self) { try center.synchronize(timeout: .milliseconds(10)) }
            #expect(error?.code == .timedOut)
        }
        #expect(ended.count == 0 || isLate())
        try? center.close(timeout: nil)
        try #require(ended.wait(forCount: 1))
        // This ended it, not the time limit for the bus.
        #expect(ended.elements[0]?.code == .closed || isLate())
    }

    @Test func `one caller's short limit does not end the wait of another`() throws {
        let bus = try HangingBus()
        let center = NotifyCenter(bus: .address(bus.address))
        let isLate = lateness()
        let (begun, ended, impatient) = (Counter(), Recorder<NotifyBusError.Code>(), Counter())
        // This opens the connection, and gives up.
        startThread {
            begun.add()
            try? center.synchronize(timeout: .milliseconds(500))
            impatient.add()
        }
        try #require(begun.wait(for: 1))
        startThread {
            do throws(NotifyBusError) { try center.postOnceConnected("com.example.first") } catch {
                ended.append(error.code)
            }
        }
        try #require(impatient.wait(for: 1))
        for _ in 0..<5 { #expect(throws: NotifyBusError.self) { try center.synchronize(timeout: .milliseconds(10)) } }
        #expect(ended.count == 0 || isLate())
        try? center.close(timeout: nil)
        try #require(ended.wait(forCount: 1))
        #expect(ended.elements == [.closed] || isLate())
    }

    @Test func `threads that post for the first time wait together, and get the same result`() throws {
        let bus = try HangingBus()
        let center = NotifyCenter(bus: .address(bus.address))
        let errors = Recorder<NotifyBusError.Code>()
        for number in 0..<5 {
            startThread {
                do throws(NotifyBusError) { try center.postOnceConnected(NotifyName("com.example.\(number)")) } catch {
                    errors.append(error.code)
                }
            }
            // The others come later, and still wait for the same attempt.
            if number == 0 {
                try bus.waitForConnection()
                try passTime("50ms")
            }
        }
        #expect(errors.wait(forCount: 5))
        #expect(errors.elements == Array(repeating: .timedOut, count: 5))
        // One attempt, not one for each.
        #expect(bus.takeConnections() == 1)
        #expect(center.statistics.posted == 0)
    }

    @Test func `a bus whose queue is full keeps nobody longer than 10 seconds, or than the caller's own limit`() throws
    {
        let bus = try HangingBus(isFull: true)
        for limit in [Duration.seconds(1), nil] {
            let center = NotifyCenter(bus: .address(bus.address))
            let began = ContinuousClock.now
            let error = #expect(throws: NotifyBusError.self) {
                if let limit {
                    try center.synchronize(timeout: limit)
                } else {
                    try center.postOnceConnected("com.example.full")
                }
            }
            #expect(error?.code == .timedOut)
            // The rest is for a busy machine.
            #expect(ContinuousClock.now - began < (limit ?? .seconds(10)) + .seconds(20))
            try? center.close(timeout: nil)
        }
    }

    @Test(arguments: busKinds)
    func `when a hanging bus replaces another, only posts wait`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let observation = try center.addObserver(for: "com.example.heard", timeout: .seconds(25)) { _ in }
        try center.postOnceConnected("com.example.heard")
        try center.synchronize(timeout: .patience)
        // In this order, so that a client always finds one of them.
        let hanging = try HangingBus(inPlaceOf: bus)
        bus.kill()
        for _ in 0..<100 { try center.postOnceConnected("com.example.waits") }
        #expect(center.waitingPosts > 0)
        let flush = #expect(throws: NotifyBusError.self) { try center.flush(timeout: .milliseconds(100)) }
        #expect(flush?.code == .timedOut)
        let report = #expect(throws: NotifyBusError.self) {
            try center.lifecycle.report(.background, timeout: .seconds(1))
        }
        #expect(report?.code == .timedOut || report?.code == .disconnected)
        // If the bus has not admitted the program within 10 seconds, callers without a limit get an error.
        let end = #expect(throws: NotifyBusError.self) { try center.flush(timeout: nil) }
        #expect(end?.code == .disconnected)
        try? center.close(timeout: nil)
        withExtendedLifetime((observation, hanging)) {}
    }

    @Test(arguments: busKinds)
    func `a barrier among the posts of other threads reports no failure`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let center = bus.makeCenter()
        let observation = try center.addObserver(for: "com.example.x", timeout: .seconds(25)) { _ in }
        let mayEnd = Counter()
        let ended = Counter()
        for _ in 0..<2 {
            startThread {
                while mayEnd.value == 0 { try? center.postOnceConnected("com.example.x") }
                ended.add()
            }
        }
        for _ in 0..<(isLongRun ? 100 : 8) { try center.synchronize(timeout: .patience) }
        mayEnd.add()
        #expect(ended.wait(for: 2))
        observation.cancel()
    }

    @Test func `a report without a bus says so`() throws {
        let center = NotifyCenter(bus: .address("unix:path=/nonexistent/bus"))
        let error = #expect(throws: NotifyBusError.self) {
            try center.lifecycle.report(.background, timeout: .seconds(10))
        }
        #expect(error?.code == .noBus)
    }

    @Test(arguments: busKinds)
    func `adding an observer while the center closes is an error`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        for _ in 0..<50 {
            let center = bus.makeCenter()
            let first = try center.addObserver(for: "com.example.first", timeout: .seconds(25)) { _ in }
            let mayClose = Counter()
            let closed = Counter()
            startThread {
                _ = mayClose.wait(for: 1)
                try? center.close(timeout: nil)
                closed.add()
            }
            while true {
                do throws(NotifyBusError) {
                    try center.addObserver(for: "com.example.next", timeout: .seconds(25)) { _ in }.cancel()
                    mayClose.add()
                } catch {
                    #expect(error.code == .closed)
                    break
                }
            }
            #expect(closed.wait(for: 1))
            first.cancel()
        }
    }
}
