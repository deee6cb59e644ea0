// SPDX-License-Identifier: Apache-2.0

import NotifyCore
import NotifyNames

/// What a connection knows about posters, as `Receiver` does. Some names count only from their owner, so a
/// post is held back until the bus has said who sent it. The directory is the real one, which keeps names; this adds
/// their numbers.
struct SenderCheck {
    enum Verdict {
        case believed, refused, held
        /// It is held, and the bus must be asked.
        case asks
    }

    private var directory = SenderDirectory()
    private var users: [String: UInt32] = [:]
    private var held: [String: Queue<Int>] = [:]

    func hash(into hasher: inout Hasher) {
        directory.hash(into: &hasher)
        hasher.combine(users)
        hasher.combine(held.mapValues { Array($0.waiting) })
    }

    var isHolding: Bool { directory.isHolding }
    /// The posts that are held, a bit for each.
    var posts: UInt64 { held.values.reduce(0) { $1.waiting.reduce($0) { $0 | 1 << UInt64($1) } } }

    mutating func judge(_ number: Int, _ post: Post, from sender: String, _ mutation: Mutation?) -> Verdict {
        guard post.name == Subject.owned || directory.isHolding else { return .believed }
        if mutation == .believesAnybody || mutation == .overtakes && post.name != Subject.owned { return .believed }
        switch directory.judge(Subject.names[post.name], from: sender, users[sender]) {
        case .believed: return .believed
        case .refused: return .refused
        case .held(let isFirst, _):
            held[sender, default: Queue()].append(number)
            return isFirst ? .asks : .held
        }
    }

    /// The bus has said who a sender is: nil if the sender is gone.
    mutating func learn(user: UInt32?, of sender: String) {
        users[sender] = user
        directory.learn(user: user, of: sender)
    }

    /// - Returns: the posts that were held when the connection was lost.
    mutating func takeAll() -> [NotifyName] { directory.takeAll() }

    /// The next post that was held and must be believed.
    mutating func next() -> Int? {
        while let (_, sender, verdict) = directory.nextVerified() {
            let number = held[sender]?.popFirst()
            if verdict == .believed { return number }
        }
        return nil
    }
}
