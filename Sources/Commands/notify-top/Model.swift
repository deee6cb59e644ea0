// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import NotifyCore

/// The sort order of the names.
enum NameOrder: String, CaseIterable {
    case rate, count, last, name

    var next: NameOrder {
        let all = NameOrder.allCases
        return all[((all.firstIndex(of: self) ?? 0) + 1) % all.count]
    }
}

/// What has been heard of a name.
struct NameActivity {
    /// The number of seconds over which a rate is computed.
    static let span: Int64 = 10

    private(set) var count: UInt64 = 0
    /// The time of day of the last post, in nanoseconds since 1970.
    private(set) var last: Int64 = 0
    /// The unique name of the connection that last posted it.
    fileprivate(set) var sender: String?
    /// How many posts came in each recent second of the monotonic clock.
    private var recent: [(second: Int64, count: UInt64)] = []

    mutating func add(_ number: UInt64, at moment: Int64, timeOfDay: Int64) {
        count += number
        last = timeOfDay
        let second = moment / 1_000_000_000
        if let newest = recent.last, newest.second == second {
            recent[recent.count - 1].count += number
        } else {
            recent.removeAll { $0.second <= second - NameActivity.span }
            recent.append((second, number))
        }
    }

    /// Posts per second, over the last ten seconds or since the start.
    func rate(at moment: Int64, since start: Int64) -> Double {
        let second = moment / 1_000_000_000
        let sum = recent.reduce(0) { $1.second > second - NameActivity.span ? $0 + $1.count : $0 }
        let seconds = min(Double(NameActivity.span), max(1, Double(moment - start) / 1e9))
        return Double(sum) / seconds
    }
}

/// Everything that is shown.
struct Model {
    /// Beyond this many names, the others are counted together.
    static let limit = 10_000

    var order: NameOrder
    private(set) var start: Int64
    private(set) var names: [NotifyName: NameActivity] = [:]
    private(set) var all = NameActivity()
    /// Posts of names that are not listed.
    private(set) var others: UInt64 = 0
    /// The processes behind the connections that may post.
    private var posters: [String: PostingProcess] = [:]
    private(set) var observers: [AgentInterface.ListEntry]?
    /// Whether the agent is another user's, which is not asked.
    private(set) var isAgentForeign = false
    var isBusAway = false
    /// Whether the agent can't be seen, whether there is one or not.
    let isInSandbox: Bool

    init(order: NameOrder, start: Int64, isInSandbox: Bool = false) {
        self.order = order
        self.start = start
        self.isInSandbox = isInSandbox
    }

    mutating func heard(_ name: NotifyName, _ count: UInt64, at moment: Int64, timeOfDay: Int64) {
        all.add(count, at: moment, timeOfDay: timeOfDay)
        if names[name] == nil, names.count >= Model.limit {
            others += count
        } else {
            names[name, default: NameActivity()].add(count, at: moment, timeOfDay: timeOfDay)
        }
    }

    /// Posts of names that were not told apart.
    mutating func heardOthers(_ count: UInt64, at moment: Int64, timeOfDay: Int64) {
        guard count > 0 else { return }
        all.add(count, at: moment, timeOfDay: timeOfDay)
        others += count
    }

    mutating func note(sender: String, of name: NotifyName) {
        names[name]?.sender = sender
    }

    /// - Returns: whether that reveals who has posted one of the names.
    mutating func learn(_ news: [String: PostingProcess]) -> Bool {
        if news.isEmpty { return false }
        let senders = Set(names.values.compactMap(\.sender))
        // Connections come and go; those that have posted stay as long as their names.
        if posters.count > Model.limit { posters = posters.filter { senders.contains($0.key) } }
        posters.merge(news) { $1 }
        return news.keys.contains { senders.contains($0) }
    }

    /// The agent has replied, or there is none to be asked.
    mutating func learn(_ answer: Result<[AgentInterface.ListEntry], BusFault>) {
        (observers, isAgentForeign) = (nil, false)
        switch answer {
        case .success(let list): observers = list
        case .failure(let fault): isAgentForeign = fault.saysForeignAgent
        }
    }

    /// The unique names stand for other connections now.
    mutating func forgetSenders() {
        posters = [:]
        for name in names.keys { names[name]?.sender = nil }
    }

    /// Who last posted a name; nil if the bus does not know.
    func poster(of activity: NameActivity) -> PostingProcess? { activity.sender.flatMap { posters[$0] } }

    mutating func forgetCounts(at moment: Int64) {
        (names, all, others, start) = ([:], NameActivity(), 0, moment)
    }

    /// Whether a rate is shown that decreases by itself.
    func isMoving(at moment: Int64) -> Bool { all.rate(at: moment, since: start) > 0 }

    func sortedNames(at moment: Int64) -> [(name: NotifyName, activity: NameActivity)] {
        let rows = names.map { (name: $0.key, activity: $0.value) }
        switch order {
        case .name: return rows.sorted { $0.name.string < $1.name.string }
        case .count: return rows.sorted { ($0.activity.count, $1.name.string) > ($1.activity.count, $0.name.string) }
        case .last: return rows.sorted { ($0.activity.last, $1.name.string) > ($1.activity.last, $0.name.string) }
        case .rate:
            return rows.map { ($0, $0.activity.rate(at: moment, since: start)) }
                .sorted {
                    ($0.1, $0.0.activity.count, $1.0.name.string) > ($1.1, $1.0.activity.count, $0.0.name.string)
                }
                .map(\.0)
        }
    }

    /// One object per line: the names, and then the observers.
    func json(now: Int64) -> String {
        var lines = ""
        for (name, activity) in sortedNames(at: now) {
            var object = JSONObject()
            object.add("kind", .string("name"))
            object.add("name", .string(name.string))
            object.add("count", .uint64(activity.count))
            object.add("rate", .double(activity.rate(at: now, since: start)))
            object.add("last", .string(LocalTime.text(nanosecondsSince1970: activity.last)))
            if let sender = activity.sender { object.add("sender", .string(sender)) }
            if let poster = poster(of: activity) {
                object.add("pid", .uint32(poster.process))
                if let program = poster.program { object.add("program", .string(program)) }
            }
            lines += object.line
        }
        if others > 0 {
            var object = JSONObject()
            object.add("kind", .string("others"))
            object.add("count", .uint64(others))
            lines += object.line
        }
        for observer in AgentInterface.ListEntry.sorted(observers ?? []) {
            var object = JSONObject()
            object.add("kind", .string("observer"))
            for (key, value) in observer.fields { object.add(key, value) }
            lines += object.line
        }
        return lines
    }
}
