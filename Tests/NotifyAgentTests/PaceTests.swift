// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import Synchronization
import TestSupport
import Testing

@testable import NotifyAgent

/// How often others are asked, and how much of what they say is read.
@Suite struct PaceTests {
    @Test func `Hyprland is asked fifty times a second at most, however many events it has`() throws {
        let asked = Counter()
        let event = Array("activewindowv2>>55d1c7a3bd40\n".utf8)
        let desktop = try SilentDesktop([".socket.sock"]) { _, _ in
            asked.add()
            return Array("{}".utf8)
        }
        let listener = try UnixListener(desktop.folder.path + "/.socket2.sock")
        let thread = try EventThread(name: "source")
        let folder = desktop.folder.path
        thread.perform { loop in
            let driver = SourceDriver(HyprlandSource(folder: folder), on: loop) { _ in }
            loop.tenant = driver
            driver.begin()
        }
        defer { thread.stop(waits: true) }
        let socket = try #require(listener.accept())
        defer { close(socket) }
        try #require(asked.wait(for: 1))
        let elapsed = ContinuousClock().measure {
            for _ in 0..<1_000 {
                _ = send(socket, event, event.count, Int32(MSG_NOSIGNAL))
                usleep(1_000)
            }
        }
        let seconds = Double(elapsed.components.seconds) + Double(elapsed.components.attoseconds) / 1e18
        #expect(Double(asked.value) <= 50 * seconds + 8)
        #expect(asked.wait(for: 2))
    }

    @Test func `sway is asked for fifty trees a second at most, however many events it has`() throws {
        let sway = try FakeSway()
        let thread = try EventThread(name: "source")
        let path = sway.path
        thread.perform { loop in
            let driver = SourceDriver(SwaySource(path: path), on: loop) { _ in }
            loop.tenant = driver
            driver.begin()
        }
        defer { thread.stop(waits: true) }
        let talk = try sway.accept()
        try talk.greet(focused: 1)
        var trees = 0
        let event = #"{"change": "focus", "current": {}, "old": null}"#
        let began = ContinuousClock.now
        while ContinuousClock.now - began < .seconds(1) {
            talk.send(SwayWire.Kind.workspaceEvent, event)
            guard try talk.next()?.kind == SwayWire.Kind.tree else { break }
            trees += 1
            talk.send(SwayWire.Kind.workspaceEvent, event)
            talk.send(SwayWire.Kind.tree, FakeSway.tree(focused: 1))
        }
        let elapsed = (ContinuousClock.now - began).components
        #expect(Double(trees) <= 50 * (Double(elapsed.seconds) + Double(elapsed.attoseconds) / 1e18) + 8)
        #expect(trees >= 5)
    }

    @Test func `messages that came together are read without moving what is behind them`() throws {
        let sway = SwayWire.message(SwayWire.Kind.windowEvent, "{}")
        // A length, no channel, three numbers, and 'L' with the command and the question.
        let pulse: [UInt8] =
            [0, 0, 0, 10, 255, 255, 255, 255] + [UInt8](repeating: 0, count: 12)
            + [UInt8(ascii: "L"), 0, 0, 0, 66, UInt8(ascii: "L"), 255, 255, 255, 255]
        func time(_ count: Int) throws -> Int64 {
            var swayStream = ArraySlice(repeatElement(sway, count: count).joined())
            var pulseStream = ArraySlice(repeatElement(pulse, count: count).joined())
            let began = Pace.processorTime
            for _ in 0..<count {
                #expect(try SwayWire.take(from: &swayStream) != nil)
                #expect(try PulseWire.take(from: &pulseStream) == .changed)
            }
            return Pace.processorTime - began
        }
        // Sixteen times as many: otherwise they would take 256 times as long.
        let few = try time(4_000)
        #expect(try time(64_000) < 64 * few)
    }

    @Test func `reading what a desktop says without end takes a tenth of a thread's time`() throws {
        let folder = try TemporaryFolder()
        let listener = try UnixListener(folder.path + "/socket")
        let thread = try EventThread(name: "reader")
        let path = folder.path + "/socket"
        let used = Mutex<Int64>(0)
        thread.perform { loop in
            let stream = SocketStream(path, on: loop, limit: 60_000, isSilent: { _ in }) { _ in
                let began = Pace.processorTime
                while Pace.processorTime < began + 2_000_000 {}
                used.withLock { $0 += Pace.processorTime - began }
            }
            loop.tenant = Tenant(stream)
        }
        let socket = try #require(listener.accept())
        let began = MonotonicTime.now
        let chunk = [UInt8](repeating: 0, count: 65_536)
        while .now < began + 1_500 {
            if send(socket, chunk, chunk.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT)) < 0 { usleep(1_000) }
        }
        let elapsed = MonotonicTime.now.nanoseconds - began.nanoseconds
        thread.stop(waits: true)
        close(socket)
        // A burst of a tenth of the saving, and one more read.
        let time = used.withLock { $0 }
        #expect(time > 0 && time <= elapsed / 10 + 20_000_000, "\(time) of \(elapsed)")
    }

    private final class Tenant: LoopTenant {
        private var stream: SocketStream?

        init(_ stream: SocketStream?) { self.stream = stream }

        func loopHasEnded() { stream = nil }
    }
}
