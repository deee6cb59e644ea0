// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import TestSupport
import Testing

@testable import notify_post

@Suite struct LineReaderTests {
    /// What a reader makes of an input that comes in these pieces; nil for a line that is too long.
    private func lines(_ pieces: [String]) throws -> [String?] {
        let pipe = try Pipe()
        let writeEnd = dup(pipe.writeEnd)
        pipe.closeWriteEnd()
        startThread {
            for piece in pieces {
                var rest = Array(piece.utf8)[...]
                while !rest.isEmpty {
                    rest = rest.dropFirst(max(0, rest.withUnsafeBytes { write(writeEnd, $0.baseAddress, $0.count) }))
                }
            }
            close(writeEnd)
        }
        let reader = LineReader(descriptor: pipe.readEnd)
        var lines: [String?] = []
        while true {
            switch reader.next() {
            case .line(let bytes): lines.append(String(decoding: bytes, as: UTF8.self))
            case .overlong: lines.append(nil)
            case .end: return lines
            case .dry, .timedOut: throw TestSupportError("it was to wait")
            case .failed(let number): throw TestSupportError("error \(number)")
            }
        }
    }

    @Test(
        arguments: [
            ([], []), (["\n"], [""]), (["a"], ["a"]), (["a\n"], ["a"]), (["a\n\nb"], ["a", "", "b"]),
            (["a", "b\nc", "\n", "d"], ["ab", "c", "d"]), (["a\r\n"], ["a\r"]),
        ] as [([String], [String])]
    )
    func `a line ends with a line feed or the input`(pieces: [String], expected: [String]) throws {
        #expect(try lines(pieces) == expected)
    }

    @Test(arguments: [510, 511, 512, 65_535, 65_536, 65_537, 1_000_000])
    func `a line longer than 511 bytes is skipped, and only that line`(length: Int) throws {
        let long = String(repeating: "x", count: length)
        let seen = length <= 511 ? long : nil
        #expect(try lines(["a\n", long, "\nb\n"]) == ["a", seen, "b"])
        #expect(try lines([long + "\n", "b"]) == [seen, "b"])
        #expect(try lines(["a\n", long]) == ["a", seen])
    }

    @Test func `lines across every boundary of the buffer stay whole`() throws {
        let expected = (0..<20_000).map { String(repeating: "y", count: $0 % 97) + String($0) }
        #expect(try lines([expected.joined(separator: "\n")]) == expected)
    }

    @Test func `a wait for input that ends early is no timeout, and does not outlast it`() throws {
        let pipe = try Pipe()
        _ = fcntl(pipe.readEnd, F_SETFL, O_NONBLOCK)
        let (descriptor, threads) = (pipe.readEnd, Recorder<pthread_t>())
        let ends = Recorder<Bool>()
        // Has poll(2) end, and does nothing else.
        signal(SIGUSR2) { _ in }
        startThread {
            var signals = sigset_t()
            sigemptyset(&signals)
            sigaddset(&signals, SIGUSR2)
            pthread_sigmask(SIG_UNBLOCK, &signals, nil)
            threads.append(pthread_self())
            let deadline = Deadline(after: .milliseconds(200))
            let end = LineReader(descriptor: descriptor, deadline: deadline).next()
            if case .timedOut = end { ends.append(deadline.hasPassed) } else { ends.append(false) }
            // So that the signal finds it.
            _ = threads.wait(forCount: 2)
        }
        try #require(threads.wait(forCount: 1))
        let hasEnded = waitUntil {
            pthread_kill(threads.elements[0], SIGUSR2)
            return ends.count > 0
        }
        threads.append(pthread_self())
        #expect(hasEnded)
        #expect(ends.elements == [true])
    }

    @Test func `an input that does not block is waited for`() throws {
        let pipe = try Pipe()
        _ = fcntl(pipe.readEnd, F_SETFL, O_NONBLOCK)
        let reader = LineReader(descriptor: pipe.readEnd)
        guard case .dry = reader.next(waits: false) else { throw TestSupportError("it was not dry") }
        let writeEnd = dup(pipe.writeEnd)
        pipe.closeWriteEnd()
        startThread {
            _ = write(writeEnd, "a\n", 2)
            close(writeEnd)
        }
        guard case .line(let bytes) = reader.next() else { throw TestSupportError("no line came") }
        #expect(String(decoding: bytes, as: UTF8.self) == "a")
    }

    @Test func `an input that can't be read is an error`() {
        let folder = open("/", O_RDONLY)
        defer { close(folder) }
        let reader = LineReader(descriptor: folder)
        guard case .failed(EISDIR) = reader.next() else {
            Issue.record("a folder was read")
            return
        }
    }
}
