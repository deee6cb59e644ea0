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

    /// The purposes of the pending calls, in no particular order.
    var purposes: [Purpose] {
        var purposes: [Purpose] = []
        pending.forEach { purposes.append($0.purpose) }
        return purposes
    }

    mutating func begin(_ serial: UInt32, to peer: Peer, for purpose: Purpose) {
        pending.set(Call(peer, purpose), for: UInt64(serial))
    }

    /// The call that a reply or an error answers.
    ///
    /// - Returns: nil if it answers none: nobody asked, it was answered already, or another peer was asked.
    mutating func end(with answer: BusMessage) -> Purpose? {
        let serial = UInt64(answer.replySerial)
        guard let call = pending[serial], answer.mayAnswer(call.peer) else { return nil }
        pending.remove(serial)
        return call.purpose
    }

    mutating func removeAll() {
        pending.removeAll()
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
