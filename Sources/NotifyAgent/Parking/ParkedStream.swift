// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore

/// What the bus has queued for a process that stands still, read in its place up to a mark.
///
/// `@unchecked Sendable`: handed to the watcher's thread, which alone touches it from then on.
final class ParkedStream: @unchecked Sendable {
    struct Outcome: Sendable {
        /// Names that were posted, whoever may post them.
        var names = PendingNames()
        /// Names that only their owner may post, by who posted them.
        var owned: [String: [NotifyName]] = [:]
        /// The end of a message whose beginning the process has read.
        var fragment: [UInt8] = []
        var hasMark = false
        var messages = 0

        /// Everything that the observer of these subjects would have heard.
        func names(amongst subjects: Subjects) -> [NotifyName] {
            var pending = names
            var all = pending.take().filter(subjects.contains)
            if let name = StreamReader.name(atEndOf: fragment), subjects.contains(name) {
                all.insert(name, at: 0)
            } else if !fragment.isEmpty {
                // Rather one too many than one too few.
                all += subjects.names.filter { StreamReader.isPossibleEnd(fragment, ofPostOf: $0.string) }
            }
            // What stood between here and the mark is lost: it may have been any of them.
            return hasMark ? all : all + subjects.names.subtracting(all)
        }
    }

    /// How much is read at most: a bus queues no more for a connection, but while that is read more may come.
    struct Bounds {
        var bytes = 1 << 30
        /// In nanoseconds.
        var time: Int64 = 10_000_000_000
    }

    /// How many bytes are read in one turn, and at once.
    private static let turn = 1_048_576
    private static let chunk = 65_536
    /// After so many looks without progress it is over.
    private static let patience = 3
    /// Of how many senders' names the bus is asked.
    private static let maximumSenders = 64

    let socket: Int32
    private let process: ProcessHandle
    private let events: Int32
    private let agent: String
    private let mark: UInt64
    private var reader = StreamReader()
    private var outcome = Outcome()
    private var looksWithoutProgress = 0
    private var bytesLeft: Int
    private let deadline: Int64

    /// - Parameter socket: a duplicate of the process's socket, which is closed at the end.
    init(socket: Int32, process: ProcessHandle, agent: String, mark: UInt64, bounds: Bounds = Bounds()) {
        bytesLeft = bounds.bytes
        deadline = MonotonicClock.now + bounds.time
        self.socket = socket
        self.process = process
        self.agent = agent
        self.mark = mark
        events = ProcessLook.openEvents(of: process.cgroup)
    }

    deinit {
        close(socket)
        if events >= 0 { close(events) }
    }

    /// Reads what is there, but not too much at once.
    ///
    /// - Returns: whether that was all.
    func readSome() -> Bool {
        // If the process runs again it reads too, and there is nothing more to be gained.
        guard process.state.map({ "Tt".utf8.contains($0) }) ?? false || ProcessLook.isFrozen(events)
        else { return true }
        guard bytesLeft > 0, MonotonicClock.now < deadline else { return true }
        var total = 0
        while total < ParkedStream.turn, !outcome.hasMark {
            switch readChunk() {
            case .some(let count) where count > 0:
                total += count
                bytesLeft -= count
            case .some: return true
            case nil: return false
            }
        }
        return outcome.hasMark
    }

    /// Whether nothing has come for a while. To be asked once a second.
    func isStuck() -> Bool {
        looksWithoutProgress += 1
        return looksWithoutProgress >= ParkedStream.patience || MonotonicClock.now >= deadline
    }

    /// Ends the connection, and reads what was still on its way.
    func finish() -> Outcome {
        shutdown(socket, Int32(SHUT_RDWR))
        // Nothing can come any more, so this ends.
        while let count = readChunk(), count > 0 {}
        reader.end { message, bytes in take(message, bytes) }
        outcome.fragment = reader.fragment
        return outcome
    }

    /// - Returns: how many bytes were read, 0 at the end, nil if there are none now.
    private func readChunk() -> Int? {
        withUnsafeTemporaryAllocation(byteCount: ParkedStream.chunk, alignment: 8) { buffer in
            // Without room for descriptors: the kernel closes those that come with the bytes.
            var count = -1
            repeat {
                count = recv(socket, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
            } while count < 0 && errno == EINTR
            guard count >= 0 else { return errno == EAGAIN ? nil : 0 }
            looksWithoutProgress = 0
            let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<count])
            reader.feed(bytes) { message, bytes in take(message, bytes) }
            return count
        }
    }

    /// - Returns: whether the same message would say nothing new.
    private func take(_ message: WireMessage, _ bytes: UnsafeRawBufferPointer) -> Bool {
        outcome.messages += 1
        if message.type == 4, message.member == "Posted", let text = message.text(in: bytes),
            let name = NotifyName(postedAt: message.path, interface: message.interface, text: text)
        {
            take(name, from: message.sender)
            return true
        }
        if message.type == 1, message.member == "Mark", message.sender == agent, message.number(in: bytes) == mark {
            outcome.hasMark = true
        }
        return false
    }

    private func take(_ name: NotifyName, from sender: String) {
        if !name.hasOwner {
            _ = outcome.names.insert(name)
        } else if outcome.owned[sender] != nil || outcome.owned.count < ParkedStream.maximumSenders {
            var names = outcome.owned[sender] ?? []
            if !names.contains(name), names.count < 1_024 { names.append(name) }
            outcome.owned[sender] = names
        }
    }
}

extension StreamReader {
    /// The name that a torn message posted, if all of its body is there.
    static func name(atEndOf fragment: [UInt8]) -> NotifyName? {
        guard fragment.last == 0 else { return nil }
        for count in 1...NotifyName.maximumLength {
            let start = fragment.count - 1 - count
            guard start >= 4 else { return nil }
            let digits = fragment[(start - 4)..<start].reversed()
            let length = digits.reduce(0) { $0 << 8 | Int($1) }
            guard length == count else { continue }
            return fragment[start..<(start + count)].withUnsafeBytes { try? NotifyName(utf8: $0) }
        }
        return nil
    }
}
