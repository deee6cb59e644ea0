// SPDX-License-Identifier: Apache-2.0

/// How much of what was answered may still be unread.
///
/// A bus keeps a message until its recipient has read it. A default dbus-daemon charges it to the sender meanwhile, and
/// stops reading from a connection that has 127 MB under way. So whoever asks and does not read the answers could silence
/// whoever answers. Beyond a limit for each connection, and for each owner, calls are refused without computing anything,
/// and far beyond it they are not answered at all.
///
/// What was sent counts as unread until the bus has reported how much it still keeps for the connection. It is asked when
/// that may be a lot.
package struct UnreadAnswers {
    /// What may be unread before the bus is asked, and before nothing more is computed for a connection, in bytes.
    package static let askedAt = 64 << 10
    package static let limit = 256 << 10
    /// Refusals are small, and the bus's report may come late: it stands in line behind everybody's calls.
    package static let silentAt = 4 << 20
    /// The same for all connections of an owner.
    package static let ownerAskedAt = 1 << 20
    package static let ownerLimit = 8 << 20
    /// How many connections of an owner are remembered before the bus is asked which of them still exist.
    private static let many = 256

    private struct Connection {
        let owner: Owner
        var bytes = 0
        /// How much there was when the bus was asked, if it has yet to answer.
        var asked: Int?
        /// How much the bus has reported last.
        var known = 0
    }

    private struct Account {
        var bytes = 0
        var names: Set<String> = []
        /// How much there may be before all its connections are asked about.
        var many = UnreadAnswers.many
        var much = UnreadAnswers.ownerAskedAt
        /// About how many of them the bus has yet to answer.
        var asked = 0
    }

    private var connections: [String: Connection] = [:]
    private var accounts: [Owner: Account] = [:]
    private var questions: [String] = []

    package init() {}

    /// What is not known to have been read.
    package func bytes(of owner: Owner) -> Int { accounts[owner]?.bytes ?? 0 }
    package func bytes(of name: String) -> Int { connections[name]?.bytes ?? 0 }
    /// How many connections are remembered.
    package var count: Int { connections.count }

    /// Why nothing is computed for a call; nil if it is.
    package mutating func refusal(_ name: String, of owner: Owner) -> Refusal? {
        if bytes(of: name) >= UnreadAnswers.limit {
            ask(name)
            return Refusal(.limitExceeded, "\(name) has yet to read \(bytes(of: name) >> 10) KB of answers.")
        }
        if bytes(of: owner) >= UnreadAnswers.ownerLimit {
            askAboutAll(of: owner)
            return Refusal(.limitExceeded, "\(owner) has yet to read \(bytes(of: owner) >> 20) MB of answers.")
        }
        return nil
    }

    /// Whether not even a refusal is sent.
    package func isIgnored(_ name: String, of owner: Owner) -> Bool {
        bytes(of: name) >= UnreadAnswers.silentAt || bytes(of: owner) >= 2 * UnreadAnswers.ownerLimit
    }

    /// Something has been sent in reply to a call.
    package mutating func hasAnswered(_ name: String, of owner: Owner, bytes: Int) {
        let owner = connections[name]?.owner ?? owner
        connections[name, default: Connection(owner: owner)].bytes += bytes
        accounts[owner, default: Account()].bytes += bytes
        accounts[owner]?.names.insert(name)
        if let connection = connections[name], connection.bytes - connection.known >= UnreadAnswers.askedAt {
            ask(name)
        }
        if let account = accounts[owner], account.names.count > account.many || account.bytes > account.much {
            askAboutAll(of: owner)
        }
    }

    /// Takes the connections about which the bus is to be asked now; each ends in `isKept`.
    package mutating func takeQuestions() -> [String] {
        guard !questions.isEmpty else { return [] }
        defer { questions = [] }
        return questions
    }

    /// The bus has reported how much it keeps for a connection.
    ///
    /// - Parameter bytes: 0 if the connection has left. Others' messages may be among it.
    package mutating func isKept(_ bytes: Int, for name: String) {
        guard let connection = connections[name], let asked = connection.asked else { return }
        let read = asked - min(asked, max(0, bytes))
        connections[name]?.asked = nil
        connections[name]?.bytes -= read
        connections[name]?.known = asked - read
        if connections[name]?.bytes == 0 { connections[name] = nil }
        guard var account = accounts.removeValue(forKey: connection.owner) else { return }
        account.bytes -= read
        account.asked -= 1
        if connections[name] == nil { account.names.remove(name) }
        if account.asked == 0 {
            // Until there is much more again, the answers would be much the same.
            account.many = max(UnreadAnswers.many, 2 * account.names.count)
            account.much = max(UnreadAnswers.ownerAskedAt, account.bytes + account.bytes / 2)
        }
        if !account.names.isEmpty { accounts[connection.owner] = account }
    }

    private mutating func ask(_ name: String) {
        guard let connection = connections[name], connection.asked == nil else { return }
        connections[name]?.asked = connection.bytes
        accounts[connection.owner]?.asked += 1
        questions.append(name)
    }

    private mutating func askAboutAll(of owner: Owner) {
        guard let account = accounts[owner], account.asked == 0 else { return }
        for name in account.names { ask(name) }
    }
}
