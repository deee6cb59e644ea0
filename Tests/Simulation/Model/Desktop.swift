// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyNames

/// What the desktop and the machine are like, and what follows from it for a program: in the words of
/// Documentation/lifecycle.md, and without the agent's code.
package struct Desktop: Hashable, Sendable {
    /// What a source knows about the focus.
    package enum Focus: Hashable, Sendable {
        /// It is not available.
        case unknown
        case nobody
        case process(Int)
        /// It looks only at the processes that observe, and at no others: all or none of them may have been found.
        case among(Int?, Processes)
    }

    /// Some processes, a bit for each, so that no step needs memory of its own.
    package struct Processes: Hashable, Sendable, CustomStringConvertible {
        private var bits: UInt8 = 0

        init(_ numbers: [Int]) { for number in numbers { bits |= 1 << UInt8(number) } }

        func contains(_ number: Int) -> Bool { bits >> UInt8(number) & 1 == 1 }
        var numbers: [Int] { (0..<UInt8.bitWidth).filter(contains) }
        package var description: String { numbers.description }
    }

    /// To which programs a kind of fact applies.
    package enum Who: CaseIterable, Sendable { case asking, everyone, nobody }

    package static let sources = ["gnome", "x11"]

    var isLocked = false
    var isAsleep = false
    /// By source.
    var focus = [Focus](repeating: .unknown, count: sources.count)

    /// The state that follows for a program; nil if the desktop says nothing about it.
    func state(_ process: Int, asks: Bool, _ setting: World.Setting) -> LifecycleState? {
        if setting.isExempt(process) { return nil }
        func isMeant(_ who: Who) -> Bool { who == .everyone || who == .asking && asks }
        if isAsleep, isMeant(setting.sleepFollowers) { return .background }
        if isLocked, isMeant(setting.sessionFollowers) { return .background }
        guard isMeant(setting.focusFollowers) else { return nil }
        var state: LifecycleState?
        for source in focus {
            switch source {
            case .unknown: break
            case .nobody: state = state ?? .background
            case .process(let focused):
                if setting.isSameApplication(process, focused) { return .foreground }
                state = state ?? .background
            case .among(let focused, let others):
                guard others.contains(process) else { break }
                if let focused, setting.isSameApplication(process, focused) { return .foreground }
                state = state ?? .background
            }
        }
        return state
    }

    /// What the agent is told about the machine, and about the focus by each source.
    func news(_ setting: World.Setting, _ mutation: Mutation?) -> [String: SourceNews] {
        var news: [String: SourceNews] = [:]
        var logins = Logins()
        logins.sessions["1"] = Logins.Session(user: 0)
        logins.sessions["1"]?.isLocked = isLocked && mutation != .ignoresLock
        logins.isAsleep = isAsleep
        news["logind"] = SourceNews(.live, .logins(logins))
        for (name, focus) in zip(Desktop.sources, focus) {
            news[name] =
                switch focus {
                case .unknown: mutation == .believesDeadSource ? nil : SourceNews(.off("it has failed"), nil)
                case .nobody: mutation == .ignoresEmptyDesktop ? nil : SourceNews(.live, .focus([]))
                case .process(let process):
                    mutation == .ignoresFocus ? nil : SourceNews(.live, .focus([setting.focused(process, mutation)]))
                case .among(let process, let others):
                    SourceNews(
                        .live,
                        .focus(
                            process.map { [setting.focused($0, mutation)] } ?? [],
                            among: mutation == .judgesEveryone ? nil : Set(others.numbers.map { Int32(100 + $0) })
                        )
                    )
                }
        }
        return news
    }
}

extension World.Setting {
    static let application = "org.example.Editor"

    func application(of process: Int) -> String { applications.contains(process) ? World.Setting.application : "" }

    func isExempt(_ process: Int) -> Bool { exempts && applications.contains(process) }

    func isSameApplication(_ process: Int, _ other: Int) -> Bool {
        process == other || applications.contains(process) && applications.contains(other)
    }

    func focused(_ process: Int, _ mutation: Mutation?) -> FocusedProcess {
        let application = mutation == .ignoresApplication ? "" : application(of: process)
        return FocusedProcess(pid: Int32(100 + process), startTime: 1, application: application, user: 0)
    }

    var policy: FactPolicy {
        func others(_ who: Desktop.Who) -> FactPolicy.Followers.Others {
            switch who {
            case .asking: .asking
            case .everyone: .everyone
            case .nobody: .nobody
            }
        }
        var policy = FactPolicy()
        policy.focus.others = others(focusFollowers)
        policy.session.others = others(sessionFollowers)
        policy.sleep.others = others(sleepFollowers)
        return policy
    }
}

extension SourceNews {
    init(_ condition: SourceCondition, _ fact: Fact?) {
        self.init()
        (self.condition, self.fact) = (condition, fact)
    }
}
