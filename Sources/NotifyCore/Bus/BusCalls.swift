// SPDX-License-Identifier: Apache-2.0

/// Calls that are under way on a connection: what each was for, and of whom it was asked.
///
/// A bus may pass on replies that nobody asked for, and serials are easy to guess. So an answer counts only if the one
/// that was asked gave it, and only once; any other message that calls itself an answer means nothing.
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

    /// What the calls under way are for, in no particular order.
    var purposes: [Purpose] {
        var purposes: [Purpose] = []
        pending.forEach { purposes.append($0.purpose) }
        return purposes
    }

    mutating func begin(_ serial: UInt32, to peer: Peer, for purpose: Purpose) {
        pending.set(Call(peer, purpose), for: UInt64(serial))
    }

    /// What a reply or an error answers.
    ///
    /// - Returns: nil if it answers nothing: nobody asked, it was answered already, or another one was asked.
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
    /// Whether this is what a call to that peer is answered with. The bus reports for others that they have gone, or may
    /// not be called.
    fileprivate func mayAnswer<Purpose>(_ peer: BusCalls<Purpose>.Peer) -> Bool {
        switch peer {
        case .bus: isFromBus
        case .connection(let name): isFrom(name) || kind == .error && isFromBus
        }
    }
}
