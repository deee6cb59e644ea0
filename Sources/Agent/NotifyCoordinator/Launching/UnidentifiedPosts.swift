// SPDX-License-Identifier: Apache-2.0

package import NotifyNames

/// Posts whose sender the bus is still being asked for, and what waits for the answer.
///
/// They were made when they arrived, even if they count only once the bus has answered. So a mark in the stream of posts
/// is passed on behind those that came before it: a program that registers is told of them.
package struct UnidentifiedPosts<Ping> {
    package struct Question: Hashable {
        package let sender: String
        /// For whose posts it is asked.
        package let trust: LaunchEntry.Trust

        package init(sender: String, trust: LaunchEntry.Trust) { (self.sender, self.trust) = (sender, trust) }
    }

    /// How many names are kept for one question and for all of them. Anybody can post, and it is not known yet who does.
    package static var limit: Int { 4_096 }
    package static var limitOfAll: Int { 16_384 }
    private static var limitOfPings: Int { 8 }

    private var names: [Question: PendingNames] = [:]
    private var count = 0
    private var pings: [String: [Ping]] = [:]
    /// The latest of each connection: an earlier one means nothing any more.
    private var marks: [ConnectionID: (mark: LaunchMark, questions: Set<Question>)] = [:]

    package init() {}

    package var isEmpty: Bool { names.isEmpty }

    /// All of them, for the next agent to ask again.
    package var all: Set<UnidentifiedPost> {
        var all: Set<UnidentifiedPost> = []
        for (question, names) in names { for name in names.names { all.insert(.init(name, from: question.sender)) } }
        return all
    }

    /// - Returns: whether the bus is to be asked now.
    package mutating func add(_ name: NotifyName, _ question: Question) -> Bool {
        let before = names[question]?.count
        let length = before ?? 0
        let hasRoom = length < UnidentifiedPosts.limit && count < UnidentifiedPosts.limitOfAll
        if before == nil { names[question] = PendingNames() }
        if hasRoom { _ = names[question]?.insert(name) }
        count += (names[question]?.count ?? 0) - length
        return before == nil
    }

    /// The bus has answered.
    ///
    /// - Returns: what was posted, each name once.
    package mutating func take(_ question: Question) -> [NotifyName] {
        guard let posted = names.removeValue(forKey: question) else { return [] }
        count -= posted.count
        return posted.names
    }

    /// Notes a call that is to be answered once the posts of its sender have been identified.
    ///
    /// - Returns: false if there are none, or too many calls.
    package mutating func postpone(_ ping: Ping, from sender: String) -> Bool {
        guard isAsked(sender), pings[sender, default: []].count < UnidentifiedPosts.limitOfPings else {
            return false
        }
        pings[sender, default: []].append(ping)
        return true
    }

    /// The calls of a sender, if nothing of it is left to identify.
    package mutating func takePings(of sender: String) -> [Ping] {
        isAsked(sender) ? [] : pings.removeValue(forKey: sender) ?? []
    }

    private func isAsked(_ sender: String) -> Bool {
        LaunchEntry.Trust.allCases.contains { names[Question(sender: sender, trust: $0)] != nil }
    }

    /// A mark has come in the stream of posts.
    ///
    /// - Returns: whether all posts before it have been identified.
    package mutating func pass(_ mark: LaunchMark) -> Bool {
        if names.isEmpty { return true }
        marks[mark.connection] = (mark, Set(names.keys))
        return false
    }

    /// - Returns: the marks that have waited for this answer, and for no other.
    package mutating func takeMarks(behind question: Question) -> [LaunchMark] {
        for connection in marks.keys { marks[connection]?.questions.remove(question) }
        let passed = marks.values.filter(\.questions.isEmpty).map(\.mark).sorted { $0.number < $1.number }
        for mark in passed { marks[mark.connection] = nil }
        return passed
    }
}
