// SPDX-License-Identifier: Apache-2.0

import NotifyCore
import NotifyNames

/// What a connection knows of those who post, as `ObservingConnection` does: some names count only from their owner, and
/// what a poster posts is held back until the bus has said who it is. The directory is the real one, which keeps names;
/// their numbers go beside it.
struct SenderCheck {
    enum Verdict {
        case believed, refused, held
        /// Held, and the bus is to be asked.
        case asks
    }

    private var directory = SenderDirectory()
    private var users: [String: UInt32] = [:]
    private var held: [String: Queue<Int>] = [:]

    var isHolding: Bool { directory.isHolding }
    /// The posts that are held, a bit each.
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

    /// The bus has said who a sender is; nil if it is gone.
    mutating func learn(user: UInt32?, of sender: String) {
        users[sender] = user
        directory.learn(user: user, of: sender)
    }

    /// - Returns: the posts that were held when the connection was lost.
    mutating func takeAll() -> [NotifyName] { directory.takeAll() }

    /// The next post that was held and is to be believed.
    mutating func next() -> Int? {
        while let (_, sender, verdict) = directory.nextVerified() {
            let number = held[sender]?.popFirst()
            if verdict == .believed { return number }
        }
        return nil
    }
}
