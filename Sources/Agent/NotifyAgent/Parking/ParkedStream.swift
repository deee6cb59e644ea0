// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore

/// What the bus has queued for a connection that is not read any more, read on its behalf up to a mark: for a stopped
/// process, or for the agent before this one.
final class ParkedStream {
    struct Outcome: Sendable {
        /// Posted names that anybody may post.
        var names = PendingNames()
        /// Names that only their owner may post, by sender.
        var owned: [String: [NotifyName]] = [:]
        /// The same of more senders than the bus is asked about. One too many is better than one too few.
        var unverified = PendingNames()
        /// The end of a message whose beginning the process has read.
        var fragment: [UInt8] = []
        var hasMark = false
        var messages = 0

        /// Everything that the observer of these subjects would have heard.
        func names(amongst subjects: Subjects) -> [NotifyName] {
            var (names, unverified) = (names, unverified)
            var all = (names.take() + unverified.take()).filter(subjects.contains)
            if let name = TornPost.name(atEndOf: fragment), subjects.contains(name) {
                all.insert(name, at: 0)
            } else if !fragment.isEmpty {
                // One too many is better than one too few.
                all += subjects.names.filter { TornPost.isPossibleEnd(fragment, ofPostOf: $0.string) }
            }
            // The posts between here and the mark are lost: they may have been of any of these names.
            return hasMark ? all : all + subjects.names.subtracting(all)
        }
    }

    /// How much is read at most: a bus queues no more for a connection, but more may come in the meantime.
    struct Bounds {
        var bytes = 1 << 30
        /// In nanoseconds.
        var time: Int64 = 10_000_000_000
    }

    /// How many bytes are read per turn.
    private static let turn = 262_144
    /// How long the bus may take to put the mark into the stream, in nanoseconds.
    private static let patience: Int64 = 60_000_000_000
    /// After this many checks without progress it ends.
    private static let lookLimit = 3
    /// For how many senders' names the bus is asked.
    private static let maximumSenders = 64

    let socket: Int32
    /// The process that must not read as well; nil if there is none.
    private let process: ProcessHandle?
    private let events: Int32
    private let agent: String
    private let mark: UInt64
    private let reader = MessageReader(.anywhere)
    private var names = NameCache()
    /// Told of posts of some names, and of their senders, as they are read.
    private var listener: (subjects: Subjects, hear: (NotifyName, String) -> Void)?
    private var outcome = Outcome()
    private var looksWithoutProgress = 0
    private var bytesLeft: Int
    private let time: Int64
    /// Whether the bus has put the mark into the stream, and by when it must have come.
    private var isMarkRouted = false
    private var deadline: Int64

    /// - Parameter socket: a duplicate of the socket, which is closed at the end.
    init(socket: Int32, process: ProcessHandle?, agent: String, mark: UInt64, bounds: Bounds = Bounds()) {
        bytesLeft = bounds.bytes
        time = bounds.time
        deadline = MonotonicTime.now.nanoseconds + ParkedStream.patience
        self.socket = socket
        self.process = process
        self.agent = agent
        self.mark = mark
        events = ProcessLook.openEvents(of: process?.cgroup)
    }

    deinit {
        close(socket)
        if events >= 0 { close(events) }
    }

    /// Reads what is available, but not too much at once.
    ///
    /// - Returns: whether that was everything.
    func readSome() -> Bool {
        guard !isReadByProcess, bytesLeft > 0, MonotonicTime.now.nanoseconds < deadline else { return true }
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

    /// Reports posts of these names up to the mark, with their senders.
    func passOn(_ subjects: Subjects, to hear: @escaping (NotifyName, String) -> Void) {
        listener = (subjects, hear)
    }

    /// Takes what was read from the socket before.
    func feed(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { reader.feed($0) }
        takeMessages()
    }

    /// Whether nothing has come for a while, or the mark may have gone where it can't be seen here. Checked once a
    /// second.
    func isStuck() -> Bool {
        if isMarkRouted { looksWithoutProgress += 1 }
        return looksWithoutProgress >= ParkedStream.lookLimit || isReadByProcess
            || MonotonicTime.now.nanoseconds >= deadline
    }

    /// The bus has answered a question that was asked after the mark was sent. Until then it is busy, and nothing is amiss.
    func markIsRouted() {
        isMarkRouted = true
        deadline = min(deadline, MonotonicTime.now.nanoseconds + time)
    }

    /// Whether the process is running again: then it reads too, and nothing more can be gained.
    private var isReadByProcess: Bool {
        guard let process else { return false }
        return !(process.state.map { "Tt".utf8.contains($0) } ?? false || ProcessLook.isFrozen(events))
    }

    /// Ends the connection, and reads what was still on its way.
    func finish() -> Outcome {
        shutdown(socket, Int32(SHUT_RDWR))
        listener = nil
        // Nothing more can come, so this terminates.
        while let count = readChunk(), count > 0 {}
        reader.finish()
        takeMessages()
        outcome.fragment = reader.fragment
        return outcome
    }

    /// - Returns: how many bytes were read, 0 at the end, nil if none are available.
    private func readChunk() -> Int? {
        // The kernel drops descriptors that come with the bytes.
        guard let count = reader.fill(from: socket) else { return nil }
        looksWithoutProgress = 0
        takeMessages()
        return count
    }

    private func takeMessages() {
        while true {
            switch reader.next() {
            case .message(let message): take(message)
            case .passedOver: outcome.messages += 1
            case .nothing, .broken: return
            }
        }
    }

    private func take(_ message: BusMessage) {
        outcome.messages += 1
        if let name = names.name(in: message) {
            guard let sender = message.sender else { return }
            if let listener, !outcome.hasMark, listener.subjects.contains(name) {
                listener.hear(name, String(cString: sender))
            }
            take(name, from: sender)
        } else if message.kind == .call, message.isFrom(agent), message.hasMember("Mark"), message.number == mark {
            outcome.hasMark = true
        }
    }

    private func take(_ name: NotifyName, from sender: UnsafePointer<CChar>) {
        guard name.hasOwner else {
            _ = outcome.names.insert(name)
            return
        }
        let sender = String(cString: sender)
        var names = outcome.owned[sender] ?? []
        guard !names.contains(name) else { return }
        guard names.count < 1_024, !names.isEmpty || outcome.owned.count < ParkedStream.maximumSenders else {
            _ = outcome.unverified.insert(name)
            return
        }
        names.append(name)
        outcome.owned[sender] = names
    }
}

/// What can be determined from the end of a post whose beginning another process has read.
package enum TornPost {
    /// The name that a torn message posted, if its body is complete.
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

    /// Whether a torn message may have been a post of a name: its end is the name's, as far as it goes.
    package static func isPossibleEnd(_ fragment: [UInt8], ofPostOf name: String) -> Bool {
        guard !fragment.isEmpty else { return false }
        var count = UInt32(name.utf8.count)
        for _ in 0...1 {
            let body = withUnsafeBytes(of: count.littleEndian) { Array($0) } + Array(name.utf8) + [0]
            if fragment.count >= body.count
                ? fragment.suffix(body.count).elementsEqual(body)
                : body.suffix(fragment.count).elementsEqual(fragment)
            {
                return true
            }
            count = count.byteSwapped
        }
        return false
    }
}
