// SPDX-License-Identifier: Apache-2.0

/// Pending calls on a connection: the purpose of each, and who was called.
///
/// A bus may pass on unrequested replies, and serials are easy to guess. So a reply counts only if it comes from the
/// peer that was called, and only once; any other message that claims to be a reply is ignored.
struct BusCalls<Purpose> {
    enum Peer: Equatable {
        /// The bus itself.
        case bus
        /// A connection, by its unique name.
        case connection(String)
    }

    private final class Call {
        let peer: Peer
        let purpose: Purpose

        init(_ peer: Peer, _ purpose: Purpose) {
            (self.peer, self.purpose) = (peer, purpose)
        }
    }

    /// By serial.
    private var pending = ObjectTable<Call>()
    /// When calls with a limit end, the earliest first, which is pending.
    private var limits = Fifo<(serial: UInt32, time: MonotonicTime)>()

    /// When the next call ends without a reply.
    var deadline: MonotonicTime? { limits.first?.time }

    /// The purposes of the pending calls, in no particular order.
    var purposes: [Purpose] {
        var purposes: [Purpose] = []
        pending.forEach { purposes.append($0.purpose) }
        return purposes
    }

    /// - Parameter limit: when the call ends without a reply. All limits of a connection are the same time away.
    mutating func begin(_ serial: UInt32, to peer: Peer, for purpose: Purpose, until limit: MonotonicTime? = nil) {
        pending.set(Call(peer, purpose), for: UInt64(serial))
        if let limit { limits.append((serial, limit)) }
    }

    /// Ends the calls that have lasted too long. A reply that comes later counts as unrequested.
    mutating func takeLate(at now: MonotonicTime) -> [Purpose] {
        var late: [Purpose] = []
        while let first = limits.first, first.time <= now {
            if let call = pending[UInt64(first.serial)] { late.append(call.purpose) }
            forget(first.serial)
        }
        return late
    }

    private mutating func remove(_ serial: UInt32) {
        pending.remove(UInt64(serial))
        while let first = limits.first, pending[UInt64(first.serial)] == nil { _ = limits.popFirst() }
    }

    /// The call that a reply or an error answers.
    ///
    /// - Returns: nil if it answers none: it was not requested, it was answered already, or another peer was asked.
    mutating func end(with answer: BusMessage) -> Purpose? {
        guard let call = pending[UInt64(answer.replySerial)], answer.mayAnswer(call.peer) else { return nil }
        remove(answer.replySerial)
        return call.purpose
    }

    /// The call was not sent, or its reply no longer counts.
    mutating func forget(_ serial: UInt32) { remove(serial) }

    mutating func removeAll() {
        pending.removeAll()
        limits = Fifo()
    }
}

extension BusMessage {
    /// Whether this can be the reply to a call to that peer. The bus replies for peers that have gone, or may not be
    /// called.
    fileprivate func mayAnswer<Purpose>(_ peer: BusCalls<Purpose>.Peer) -> Bool {
        switch peer {
        case .bus: isFromBus
        case .connection(let name): isFrom(name) || kind == .error && isFromBus
        }
    }
}
