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

    private var pending: [UInt32: (peer: Peer, purpose: Purpose)] = [:]

    /// What the calls under way are for, in no particular order.
    var purposes: some Collection<Purpose> { pending.values.lazy.map(\.purpose) }

    mutating func begin(_ serial: UInt32, to peer: Peer, for purpose: Purpose) {
        pending[serial] = (peer, purpose)
    }

    /// What a reply or an error answers.
    ///
    /// - Returns: nil if it answers nothing: nobody asked, it was answered already, or another one was asked.
    mutating func end(with answer: BusMessage) -> Purpose? {
        guard let call = pending[answer.replySerial], answer.mayAnswer(call.peer) else { return nil }
        pending[answer.replySerial] = nil
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
