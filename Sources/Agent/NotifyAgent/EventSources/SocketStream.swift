// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import NotifyCore

/// A conversation with a program of the session, by a socket in the file system. It lives on a loop, where it does not
/// block, and ends with this value.
///
/// Whatever is sent is a question, which the other side answers in time or counts as silent. However much the other side
/// says, a tenth of the thread's time at most goes into it.
final class SocketStream {
    private let loop: EventLoop
    private var socket: Int32
    private let limit: Int64
    private let isSilent: (_ question: String) -> Void
    /// What has not been answered yet, the oldest first.
    private var questions: [(title: String, limit: MonotonicTime)] = []
    private var timer: Int?
    private let hear: ([UInt8]) -> Void
    private var pace = Pace(saving: 100_000_000)
    private var rest: Int?

    /// Connects.
    ///
    /// - Parameters:
    ///   - limit: how long an answer may take, in milliseconds.
    ///   - isSilent: called if it takes longer.
    ///   - hear: called with what has come; with nothing, again and again, when the other side has gone.
    /// - Returns: nil if nothing listens there, with the reason in `errno`.
    init?(
        _ path: String,
        on loop: EventLoop,
        limit: Int64,
        isSilent: @escaping (_ question: String) -> Void,
        _ hear: @escaping ([UInt8]) -> Void
    ) {
        (self.loop, self.limit, self.isSilent, self.hear) = (loop, limit, isSilent, hear)
        socket = linux_connect_unix(path)
        guard socket >= 0 else { return nil }
        watch()
    }

    private func watch() { loop.watch(socket) { [weak self] in self?.read() } }

    private func read() {
        guard let bytes = SocketStream.receive(from: socket) else { return }
        let began = Pace.processorTime
        hear(bytes)
        pace.pay(10 * (Pace.processorTime - began))
        guard let due = pace.due else { return }
        loop.forget(socket)
        rest = loop.at(MonotonicTime(nanoseconds: due)) { [weak self] in
            self?.rest = nil
            self?.watch()
        }
    }

    deinit {
        loop.cancel(timer)
        loop.cancel(rest)
        guard socket >= 0 else { return }
        loop.forget(socket)
        close(socket)
    }

    /// Sends a question. It is short enough for the socket, or its other end does not read.
    ///
    /// - Parameter title: what the question is called if there is no answer.
    /// - Returns: whether it could be sent.
    func ask(_ bytes: [UInt8], _ title: String) -> Bool {
        guard linux_send(socket, bytes, bytes.count, nil, 0) == bytes.count else { return false }
        questions.append((title, .now + limit))
        if timer == nil { arm() }
        return true
    }

    /// The oldest question of this title has been answered.
    ///
    /// - Returns: whether there was one.
    func isAnswered(_ title: String) -> Bool {
        guard let index = questions.firstIndex(where: { $0.title == title }) else { return false }
        questions.remove(at: index)
        arm()
        return true
    }

    private func arm() {
        loop.cancel(timer)
        timer = questions.first.map { question in
            loop.at(question.limit) { [weak self] in self?.isSilent(question.title) }
        }
    }

    /// - Returns: nil if there is nothing yet.
    private static func receive(from socket: Int32) -> [UInt8]? {
        var (count, code): (Int, Int32) = (0, 0)
        let bytes = [UInt8](unsafeUninitializedCapacity: 16_384) { buffer, initialized in
            count = recv(socket, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
            if count < 0 { code = errno }
            initialized = max(0, count)
        }
        return code == EAGAIN || code == EINTR ? nil : bytes
    }
}

/// What has come of a stream of messages and not been taken.
final class StreamBuffer {
    private var bytes: [UInt8] = []

    /// Takes what is complete.
    ///
    /// - Parameter handle: called with the rest, which it shortens, until it returns false.
    func take<Fault: Error>(
        _ new: [UInt8],
        _ handle: (inout ArraySlice<UInt8>) throws(Fault) -> Bool
    ) throws(Fault) {
        bytes += new
        var rest = bytes[...]
        while try handle(&rest) {}
        // Once for all, as this moves the remaining bytes.
        let count = bytes.count - rest.count
        rest = []
        if count > 0 { bytes.removeFirst(count) }
    }
}
