// SPDX-License-Identifier: Apache-2.0

import NotifyCore
import NotifyNames

/// The moments in which a promise does not hold in full: the rows of the table "What can still happen" of
/// Documentation/lifecycle.md, in its words. What is tolerated is counted under one of these, and nothing else is.
package enum Row: Int, CaseIterable, Sendable {
    /// A post is delivered or dropped.
    case goingToBackground
    /// A post is dropped or delivered.
    case comingFromBackground
    /// A post is heard twice.
    case beingSuspended
    /// A post is heard twice.
    case beingResumed
    /// A post is lost that comes before the agent hears the name.
    case addedLate
    /// A post is not heard itself, but its name, which may stand for several posts.
    case stopped
    /// A name is heard without a post; for a prefix a post is lost.
    case torn
    /// Each name is heard once, for each such agent, or a post twice; for a prefix posts are lost.
    case agentDied
    /// Each name is heard once, or a post twice.
    case resumeDisturbed
    /// A post is dropped or replayed, until it is decided again.
    case lostWhileChanging
    /// A post is lost; each name is heard once, for each such loss.
    case connectionLost

    /// The first column of the table.
    package var title: String {
        switch self {
        case .goingToBackground: "going into the background"
        case .comingFromBackground: "coming back from the background"
        case .beingSuspended: "being suspended"
        case .beingResumed: "being resumed"
        case .addedLate: "an observer added while suspended, or just before its program is stopped"
        case .stopped: "stopped, not yet noticed"
        case .torn: "stopped in the middle of reading a post"
        case .agentDied: "suspended, parked or being resumed, and the agent dies"
        case .resumeDisturbed: "stopped, or its connection lost, while it is being resumed"
        case .lostWhileChanging: "the connection is lost while the state changes"
        case .connectionLost: "the connection is lost"
        }
    }
}

/// What is promised to the registrations, and whether it is kept.
///
/// Posts have numbers below 64, so that a set of them is a number.
struct Oracle {
    /// What is promised to an observer now.
    struct Contract {
        /// The state that was promised; nil while a change is under way.
        var known: LifecycleState?
        /// Why nothing certain is promised.
        var row = Row.stopped
        /// While nothing certain is: whether posts may be dropped, and whether they may be replayed.
        var mayDrop = false
        var mayReplay = false
        /// What was asked for last.
        var wanted: LifecycleState?
        /// Changes that were asked for and are not answered.
        var pending = 0
        /// Whether more has happened than these changes.
        var isDisturbed = false
        /// Whether an agent has died with what it had noted for it.
        var agentLost = false
        /// How often each name may be heard, posted or not, and by which row.
        var unposted: UInt8 = 0
        var unpostedRow = Row.agentDied

        static func settled(_ state: LifecycleState?) -> Contract { Contract(known: state) }
    }

    struct Registration {
        let observer: Int
        let subject: Int
        /// The first post that is later than the registration's confirmation.
        var from: Int?
        var isCancelled = false
        /// Whether it was confirmed in a moment in which nothing certain was promised, or while suspended.
        var isLate = false
        /// Posts that are to be heard, once each.
        var due: UInt64 = 0
        /// Posts that may be heard: they came before the registration was confirmed, or while nothing certain was
        /// promised.
        var possible: UInt64 = 0
        /// Posts of which at least the name is to be heard.
        var cover: UInt64 = 0
        /// Posts that must not be heard themselves.
        var forbidden: UInt64 = 0
        /// Posts whose name may be heard instead, or as well: those that were made while the program was suspended, and
        /// those of the moments before and after.
        var replayable: UInt64 = 0
        var replayableToo: UInt64 = 0
        var heard: UInt64 = 0
        /// How often each name may be heard without a post, and by which row.
        var unposted: SIMD4<UInt8> = .zero
        var unpostedRow = Row.agentDied
    }

    private(set) var registrations: [Registration] = []
    private(set) var contracts: [Contract] = []
    /// The last post of each poster that each observer has heard.
    private var lastHeard: [SIMD2<Int>] = []
    /// Whose process was stopped since the last rest.
    private var stopped: Set<Int> = []
    /// Of them those that believe to be suspended, whatever was set since.
    private var stoppedSuspended: Set<Int> = []
    private(set) var failure: String?
    private(set) var tolerated = [Int](repeating: 0, count: Row.allCases.count)
    private(set) var checks = 0
    /// The posts of each name, and how many posts there are.
    private var masks = [UInt64](repeating: 0, count: Subject.nameCount)
    private var postCount = 0
    private var posters: [Int] = []

    mutating func fail(_ text: String) { if failure == nil { failure = text } }

    private mutating func tolerate(_ row: Row, _ count: Int = 1) { tolerated[row.rawValue] += count }

    // MARK: - Who there is

    mutating func addObserver() {
        contracts.append(.settled(nil))
        lastHeard.append(SIMD2(-1, -1))
    }

    /// - Parameter unread: posts that the agent was sent for others: it may read them when it has heard of this one.
    mutating func register(_ observer: Int, _ subject: Int, unread: UInt64) {
        var new = Registration(observer: observer, subject: subject)
        // One that comes late hears with the others what waits for them.
        for other in registrations where other.observer == observer {
            new.replayable |= other.replayable
            new.replayableToo |= other.replayableToo
        }
        new.replayableToo |= unread
        registrations.append(new)
        let contract = contracts[observer]
        for _ in 0..<contract.unposted { allowEachName(registrations.count - 1, contract.unpostedRow) }
    }

    mutating func cancel(_ registration: Int) { registrations[registration].isCancelled = true }

    /// The bus has the rules of a subject: each registration of it is confirmed.
    mutating func confirmed(_ observer: SimulatedObserver, _ subject: Int) {
        for index in registrations.indices {
            let registration = registrations[index]
            guard registration.observer == observer.number, registration.subject == subject, registration.from == nil
            else { continue }
            registrations[index].from = postCount
            registrations[index].isLate = contracts[observer.number].known != .foreground
        }
    }

    // MARK: - Changes

    /// Somebody asks for a state, or what comes out of it is not known.
    mutating func changeBegins(_ observer: Int, _ state: LifecycleState?) {
        var contract = contracts[observer]
        let old = contract.known
        contract.pending += 1
        contract.wanted = state
        if old != nil { (contract.mayDrop, contract.mayReplay) = (false, false) }
        for one in [old, state] where one == .background { contract.mayDrop = true }
        for one in [old, state] where one == .suspended { contract.mayReplay = true }
        if state == nil { (contract.mayDrop, contract.mayReplay, contract.isDisturbed) = (true, true, true) }
        if old != nil || state == .background {
            contract.row =
                switch (old, state) {
                case (_, .background?): .goingToBackground
                case (.background?, _): .comingFromBackground
                case (_, .suspended?): .beingSuspended
                default: .beingResumed
                }
        }
        contract.known = nil
        contracts[observer] = contract
        if stopped.contains(observer) {
            // Parked on its way, the agent keeps what comes meanwhile.
            contracts[observer].mayReplay = true
            if contract.mayReplay || stoppedSuspended.contains(observer) {
                allowEachName(of: observer, .resumeDisturbed)
            }
        }
        if state != .foreground, state != .suspended { forgive(observer, contract.row, alsoDue: contract.isDisturbed) }
    }

    mutating func changeEnded(_ observer: Int, _ state: LifecycleState?, isDone: Bool) {
        contracts[observer].pending -= 1
        if !isDone || state == nil { contracts[observer].isDisturbed = true }
        // Of several wishes the last one wins, in whatever order they are answered.
        guard contracts[observer].pending == 0, !contracts[observer].isDisturbed,
            let wanted = contracts[observer].wanted
        else { return }
        settle(observer, in: wanted)
    }

    private mutating func settle(_ observer: Int, in state: LifecycleState) {
        let old = contracts[observer]
        contracts[observer] = .settled(state)
        if state == .suspended || stopped.contains(observer) {
            contracts[observer].agentLost = old.agentLost
            (contracts[observer].unposted, contracts[observer].unpostedRow) = (old.unposted, old.unpostedRow)
        }
        if state == .foreground, stopped.contains(observer) { disturb(observer, .stopped, drops: false) }
        guard state == .background else { return }
        forgive(observer, .goingToBackground, alsoDue: false)
        for index in registrations.indices where registrations[index].observer == observer {
            (registrations[index].replayable, registrations[index].replayableToo) = (0, 0)
            registrations[index].unposted = .zero
        }
    }

    /// What has not been heard so far need not be heard.
    private mutating func forgive(_ observer: Int, _ row: Row, alsoDue: Bool) {
        for index in registrations.indices where registrations[index].observer == observer {
            tolerate(row, registrations[index].cover.nonzeroBitCount)
            registrations[index].cover = 0
            guard alsoDue else { continue }
            tolerate(row, registrations[index].due.nonzeroBitCount)
            registrations[index].due = 0
        }
    }

    mutating func reportBegins(_ observer: SimulatedObserver, _ state: LifecycleState) {
        for other in reportedTogether[observer.process] { changeBegins(other, nil) }
    }

    mutating func reportAnswered(_ observer: SimulatedObserver, _ state: LifecycleState, _ isDone: Bool) {
        for other in reportedTogether[observer.process] { changeEnded(other, nil, isDone: isDone) }
        answers += 1
    }

    /// The observers of each process.
    var reportedTogether: [[Int]] = []
    private(set) var answers = 0

    // MARK: - What goes wrong

    /// Something has happened to an observer that no promise is about.
    private mutating func disturb(_ observer: Int, _ row: Row, drops: Bool) {
        contracts[observer].row = row
        contracts[observer].isDisturbed = true
        if contracts[observer].known != nil {
            (contracts[observer].mayDrop, contracts[observer].mayReplay) = (false, false)
        }
        contracts[observer].mayDrop = contracts[observer].mayDrop || drops
        contracts[observer].mayReplay = true
        contracts[observer].known = nil
    }

    /// - Parameters:
    ///   - subjects: what the agent has heard that it observes.
    ///   - unread: posts that the agent was sent for others, and reads when it holds the names for this one as well.
    mutating func processStopped(_ observer: Int, knows subjects: [Int], unread: UInt64) {
        stopped.insert(observer)
        let mayBeSuspended = contracts[observer].known == nil && contracts[observer].mayReplay
        if contracts[observer].known == .suspended || mayBeSuspended { stoppedSuspended.insert(observer) }
        // Parked on its way out of the suspension, it does not know that the agent has what was posted.
        if contracts[observer].known == nil, contracts[observer].mayReplay {
            allowEachName(of: observer, .resumeDisturbed)
        }
        if contracts[observer].known == .background || contracts[observer].known == .suspended { return }
        disturb(observer, .stopped, drops: false)
        var queued: UInt64 = 0
        for one in registrations where one.observer == observer { queued |= one.due | one.cover | one.possible }
        for index in registrations.indices where registrations[index].observer == observer {
            // The agent reads them, and keeps the names alone, which one that has come since hears as well.
            registrations[index].cover |= registrations[index].due
            registrations[index].replayableToo |= queued | unread
            registrations[index].due = 0
            if contracts[observer].mayDrop { registrations[index].cover = 0 }
            guard !subjects.contains(registrations[index].subject) else { continue }
            // The agent does not know that its posts are wanted.
            tolerate(.addedLate, registrations[index].cover.nonzeroBitCount)
            registrations[index].cover = 0
            registrations[index].isLate = true
        }
    }

    /// A post stands in the stream of a stopped program, and the agent hears it as well: its name may be kept from both.
    mutating func standsTwice(_ name: Int, _ observer: Int) {
        for index in registrations.indices
        where registrations[index].observer == observer && Subject.matches(registrations[index].subject, name) {
            registrations[index].unposted[name] += 1
            registrations[index].unpostedRow = .stopped
        }
    }

    /// A post whose sender was still asked for when the connection was lost: nobody will say whether it is genuine.
    mutating func wasHeldBack(_ name: Int, _ observer: Int) {
        for index in registrations.indices
        where registrations[index].observer == observer && Subject.matches(registrations[index].subject, name) {
            registrations[index].unposted[name] += 1
            registrations[index].unpostedRow = stopped.contains(observer) ? .stopped : .connectionLost
        }
    }

    mutating func connectionLost(_ observer: Int) {
        let row: Row = contracts[observer].known == nil ? .lostWhileChanging : .connectionLost
        disturb(observer, row, drops: true)
        forgive(observer, row, alsoDue: true)
        allowEachName(of: observer, .connectionLost)
    }

    /// The agent has died, and with it what it had noted.
    mutating func agentDied() {
        for observer in contracts.indices {
            if contracts[observer].known != nil, stopped.contains(observer) {
                // What was set while it stood still it has not heard of.
                disturb(observer, .agentDied, drops: true)
                forgive(observer, .agentDied, alsoDue: false)
            }
            switch contracts[observer].known {
            case .foreground, .background: break
            case .suspended, nil:
                contracts[observer].agentLost = true
                contracts[observer].row = .agentDied
                contracts[observer].isDisturbed = true
                contracts[observer].mayReplay = true
                allowEachName(of: observer, .agentDied)
            }
        }
    }

    private mutating func allowEachName(of observer: Int, _ row: Row) {
        contracts[observer].unposted += 1
        contracts[observer].unpostedRow = row
        for index in registrations.indices where registrations[index].observer == observer { allowEachName(index, row) }
    }

    private mutating func allowEachName(_ registration: Int, _ row: Row) {
        let subject = registrations[registration].subject
        registrations[registration].unpostedRow = row
        if Subject.isPrefix(subject) {
            // Nobody knows the names.
            tolerate(row, registrations[registration].cover.nonzeroBitCount)
            registrations[registration].cover = 0
            // Another registration may observe them by name.
            registrations[registration].unposted &+= Subject.each(subject)
        } else {
            registrations[registration].unposted[subject] += 1
        }
    }

    /// An observer gives its agent up.
    mutating func deadlinePassed(_ observer: SimulatedObserver) {
        let number = observer.number
        switch contracts[number].known {
        case .foreground: contracts[number].isDisturbed = true
        case nil:
            contracts[number].isDisturbed = true
            allowEachName(of: number, .agentDied)
        case .background: disturb(number, .comingFromBackground, drops: true)
        case .suspended:
            disturb(number, .agentDied, drops: false)
            allowEachName(of: number, .agentDied)
        }
    }

    /// A post was torn: the process has its beginning.
    mutating func torn(_ post: Int, of owner: Bus.Owner) {
        guard case .observer(let observer) = owner else { return }
        for index in registrations.indices where registrations[index].observer == observer {
            if Subject.isPrefix(registrations[index].subject) {
                tolerate(.torn)
                registrations[index].cover &= ~(1 << UInt64(post))
                registrations[index].due &= ~(1 << UInt64(post))
                registrations[index].unposted &+= Subject.each(registrations[index].subject)
            } else {
                registrations[index].unposted[registrations[index].subject] += 1
            }
            registrations[index].unpostedRow = .torn
        }
    }

    // MARK: - Posts

    mutating func posted(_ post: Post) {
        masks[post.name] |= 1 << UInt64(postCount)
        posters.append(post.poster)
        postCount += 1
    }

    /// The bus has given a post its place.
    mutating func routed(_ number: Int, _ post: Post) {
        let name = post.name
        let bit: UInt64 = 1 << UInt64(number)
        for index in registrations.indices {
            let registration = registrations[index]
            guard !registration.isCancelled, Subject.matches(registration.subject, name) else { continue }
            guard post.isGenuine else {
                registrations[index].forbidden |= bit
                continue
            }
            let contract = contracts[registration.observer]
            let isLater = registration.from.map { $0 <= number } ?? false
            switch contract.known {
            case .foreground:
                if isLater { registrations[index].due |= bit } else { registrations[index].possible |= bit }
            case .background: registrations[index].forbidden |= bit
            case .suspended:
                registrations[index].forbidden |= bit
                registrations[index].replayable |= bit
                guard isLater else { break }
                if registration.isLate {
                    tolerate(.addedLate)
                } else if contract.agentLost, Subject.isPrefix(registration.subject) {
                    tolerate(.agentDied)
                } else {
                    registrations[index].cover |= bit
                }
            case nil:
                registrations[index].possible |= bit
                if contract.mayReplay { registrations[index].replayableToo |= bit }
                guard isLater else { break }
                if contract.mayDrop || registration.isLate {
                    tolerate(contract.row)
                } else if contract.agentLost, Subject.isPrefix(registration.subject) {
                    tolerate(.agentDied)
                } else {
                    registrations[index].cover |= bit
                }
            }
        }
    }

    /// An observer has heard a post in its place.
    mutating func heard(_ number: Int, _ name: Int, _ observer: Int) {
        let bit: UInt64 = 1 << UInt64(number)
        let poster = posters[number]
        if lastHeard[observer][poster] > number { fail("observer \(observer) hears post \(number) out of order") }
        lastHeard[observer][poster] = number
        for index in registrations.indices {
            let registration = registrations[index]
            guard registration.observer == observer, !registration.isCancelled,
                Subject.matches(registration.subject, name)
            else { continue }
            checks += 1
            if registration.forbidden & bit != 0 {
                fail("registration \(index) hears post \(number), which was made in the background or while suspended")
            }
            if registration.heard & bit != 0 { fail("registration \(index) hears post \(number) twice") }
            registrations[index].heard |= bit
            registrations[index].due &= ~bit
            registrations[index].cover &= ~bit
        }
    }

    /// An observer hears a name that was posted while it did not listen.
    mutating func replayed(_ name: Int, _ observer: Int) {
        for index in registrations.indices {
            let registration = registrations[index]
            guard registration.observer == observer, !registration.isCancelled,
                Subject.matches(registration.subject, name)
            else { continue }
            checks += 1
            let posts = registration.replayable & masks[name]
            let others = registration.replayableToo & masks[name]
            if posts | others == 0 {
                guard registration.unposted[name] > 0 else {
                    fail(
                        "registration \(index) hears \(Subject.texts[name]), which was not posted while it did not listen"
                    )
                    continue
                }
                tolerate(registration.unpostedRow)
                registrations[index].unposted[name] -= 1
            } else if posts != 0 {
                registrations[index].replayable &= ~masks[name]
            } else {
                // One for each post: they may have been noted one after the other.
                let post = (others & masks[name]).trailingZeroBitCount
                registrations[index].replayableToo &= ~(1 << UInt64(post))
            }
            if (posts | others) & registration.heard != 0 { tolerate(contracts[observer].row) }
            registrations[index].cover &= ~masks[name]
        }
    }

    // MARK: - At rest

    /// Nothing is under way: what was promised is kept now.
    ///
    /// - Parameter observers: those that run, or stand still in the state that they know of.
    mutating func rest(_ observers: [SimulatedObserver], hasAgent: Bool) {
        for observer in observers where !observer.hasEnded {
            stopped.remove(observer.number)
            stoppedSuspended.remove(observer.number)
            let state = observer.lifecycle.state
            if let known = contracts[observer.number].known, known != state {
                fail("observer \(observer.number) was promised \(known), and is in \(state)")
            }
            for index in registrations.indices where registrations[index].observer == observer.number {
                let registration = registrations[index]
                if registration.isCancelled { continue }
                checks += 1
                if registration.from == nil, observer.connection != nil {
                    fail("registration \(index) was never confirmed")
                }
                if registration.due != 0 { fail("registration \(index) has not heard \(list(registration.due))") }
                if state == .foreground, registration.cover != 0 {
                    fail("registration \(index) has heard neither \(list(registration.cover)) nor their names")
                }
                registrations[index].isLate = false
                if state == .suspended {
                    registrations[index].replayable |= registrations[index].replayableToo
                } else {
                    (registrations[index].replayable, registrations[index].unposted) = (0, .zero)
                }
                registrations[index].possible = 0
                registrations[index].replayableToo = 0
                if state == .background { registrations[index].cover = 0 }
            }
            let old = contracts[observer.number]
            contracts[observer.number] = .settled(observer.connection == nil ? nil : state)
            guard state == .suspended else { continue }
            contracts[observer.number].agentLost = old.agentLost && !hasAgent
            contracts[observer.number].unposted = old.unposted
            contracts[observer.number].unpostedRow = old.unpostedRow
        }
    }

    private func list(_ posts: UInt64) -> String {
        let numbers = (0..<64).filter { posts >> UInt64($0) & 1 == 1 }
        return "post" + (numbers.count > 1 ? "s " : " ") + numbers.map(String.init).joined(separator: ", ")
    }
}
