// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore
import Synchronization
import TestSupport
import Testing

@testable import NotifyAgent

/// How often others are asked, and how much of what they say is read.
@Suite struct PaceTests {
    /// So many questions have come. Five may follow each other at once; a delay only makes them later.
    private func expectPauses(_ count: Int, since began: MonotonicTime) {
        let least = (Int64(count) - Pace.maximumInARow) * Pace.pause
        let taken = MonotonicTime.now.nanoseconds - began.nanoseconds
        #expect(taken >= least, "\(count) questions in \(taken / 1_000_000) ms")
    }

    @Test func `Hyprland is asked fifty times a second at most, however many events it has`() throws {
        let (asked, events) = (Counter(), Recorder<UnixStream>())
        let event = Array("activewindowv2>>55d1c7a3bd40\n".utf8)
        let desktop = try SilentDesktop([".socket.sock"]) { _, _ in
            asked.add()
            // Something happens before each answer.
            guard events.wait(forCount: 1) else { return nil }
            try? events.elements[0].send(event)
            return Array("{}".utf8)
        }
        let listener = try UnixListener(desktop.folder.path + "/.socket2.sock")
        let thread = try EventThread(name: "source")
        let folder = desktop.folder.path
        let conditions = Recorder<SourceCondition>()
        let began = MonotonicTime.now
        thread.perform { loop in
            let driver = SourceDriver(HyprlandSource(folder: folder), on: loop) { report in
                if case .condition(let condition) = report { conditions.append(condition) }
            }
            loop.tenant = driver
            driver.begin()
        }
        defer { thread.stop(waits: true) }
        events.append(UnixStream(descriptor: try #require(listener.accept())))
        try #require(asked.wait(for: 50))
        expectPauses(50, since: began)
        #expect(conditions.elements.allSatisfy { $0 == .live }, "\(conditions.elements)")
    }

    @Test func `sway is asked for fifty trees a second at most, however many events it has`() throws {
        let sway = try FakeSway()
        let thread = try EventThread(name: "source")
        let path = sway.path
        let began = MonotonicTime.now
        thread.perform { loop in
            let driver = SourceDriver(SwaySource(path: path), on: loop) { _ in }
            loop.tenant = driver
            driver.begin()
        }
        defer { thread.stop(waits: true) }
        let talk = try sway.accept()
        try talk.greet(focused: 1)
        let event = #"{"change": "focus", "current": {}, "old": null}"#
        // The first was asked for by the greeting.
        for _ in 1..<50 {
            talk.send(SwayWire.Kind.workspaceEvent, event)
            try #require(try talk.next()?.kind == SwayWire.Kind.tree)
            talk.send(SwayWire.Kind.workspaceEvent, event)
            talk.send(SwayWire.Kind.tree, FakeSway.tree(focused: 1))
        }
        expectPauses(50, since: began)
    }

    /// By their place in memory: code that copies or moves the rest for each message finds the next one elsewhere.
    @Test func `messages that came together are read where they are`() {
        // A length, no channel, three numbers, and 'L' with the command and the question.
        let message: [UInt8] =
            [0, 0, 0, 10, 255, 255, 255, 255] + [UInt8](repeating: 0, count: 12)
            + [UInt8(ascii: "L"), 0, 0, 0, 66, UInt8(ascii: "L"), 255, 255, 255, 255]
        let count = 3_000
        let bytes = Array(repeatElement(message, count: count).joined())
        let buffer = StreamBuffer()
        var (taken, moved) = (0, 0)
        // In three parts, which begin in the middle of a message.
        let part = bytes.count / 3 + 5
        for start in stride(from: 0, to: bytes.count, by: part) {
            var expected: UnsafeRawPointer?
            buffer.take(Array(bytes[start..<min(start + part, bytes.count)])) { rest throws(Never) in
                let place = rest.withUnsafeBytes { $0.baseAddress }
                if let expected, !rest.isEmpty, place != expected { moved += 1 }
                let before = rest.count
                let isOne = (try? PulseWire.take(from: &rest)) == .changed
                if isOne { taken += 1 }
                expected = place.map { $0 + (before - rest.count) }
                return isOne
            }
        }
        #expect(taken == count)
        #expect(moved == 0)
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

    @Test func `while a tree of megabytes is read, the loop does other things in between`() throws {
        let sway = try FakeSway()
        let thread = try EventThread(name: "source")
        let path = sway.path
        let rounds = Recorder<Int>()
        thread.perform { loop in
            var count = 0
            func goOn() {
                count += 1
                loop.soon(goOn)
            }
            goOn()
            let driver = SourceDriver(SwaySource(path: path), on: loop) { report in
                if case .fact(.focus(let found, _), _) = report, found.first?.pid == 7 { rounds.append(count) }
            }
            loop.tenant = driver
            driver.begin()
        }
        defer { thread.stop(waits: true) }
        let talk = try sway.accept()
        try talk.greet(focused: 0)
        talk.send(SwayWire.Kind.workspaceEvent, "{}")
        let title = String(repeating: "x", count: 200)
        let other = #"{"type": "con", "focused": false, "name": "\#(title)", "pid": 1, "nodes": []},"#
        let others = String(repeating: other, count: 5_000)
        let tree = #"{"type": "root", "nodes": ["# + others + FakeSway.tree(focused: 7) + "]}"
        try #require(try talk.next()?.kind == SwayWire.Kind.tree)
        talk.send(SwayWire.Kind.tree, tree)
        try #require(rounds.wait(forCount: 1))
        #expect(tree.utf8.count > 1 << 20 && rounds.elements[0] >= tree.utf8.count / 16_384, "\(rounds.elements)")
    }

    private final class Tenant: LoopTenant {
        private var stream: SocketStream?

        init(_ stream: SocketStream?) { self.stream = stream }

        func loopHasEnded() { stream = nil }
    }
}
