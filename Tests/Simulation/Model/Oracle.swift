// SPDX-License-Identifier: Apache-2.0

import NotifyCore
import NotifyNames

/// What the registrations are promised, and whether it is kept.
///
/// Posts have numbers below 64, so that an integer can be a set of them.
struct Oracle {
    var registrations: [Registration] = []
    var contracts: [Contract] = []
    /// The last post of each poster that each observer has heard.
    var lastHeard: [SIMD2<Int>] = []
    /// The observers whose process was stopped since the last rest.
    var stopped: Set<Int> = []
    /// Those of them that believe they are suspended, whatever was set since.
    var stoppedSuspended: Set<Int> = []
    /// Those of them whose state was changing then: they may carry out an earlier request when they continue, before their
    /// connection is ended.
    var stoppedChanging: Set<Int> = []
    var failure: String?
    var tolerated = [Int](repeating: 0, count: Row.allCases.count)
    var exceeded = [Int](repeating: 0, count: Excess.allCases.count)
    var checks = 0
    /// The posts of each name, and the number of posts.
    var masks = [UInt64](repeating: 0, count: Subject.nameCount)
    var postCount = 0
    var posters: [(poster: Int, connection: Int)] = []

    mutating func fail(_ text: String) { if failure == nil { failure = text } }

    mutating func exceed(_ excess: Excess, _ count: Int = 1) { exceeded[excess.rawValue] += count }

    mutating func tolerate(_ row: Row, _ count: Int = 1) { tolerated[row.rawValue] += count }

    // MARK: - Registrations

    mutating func addObserver() {
        contracts.append(Contract(known: nil, isNew: true))
        lastHeard.append(SIMD2(-1, -1))
    }

    /// - Parameter unread: posts that the agent was sent on behalf of others. It may read them after it has heard of
    ///   this one.
    mutating func register(_ observer: Int, _ subject: Int, unread: UInt64) {
        var new = Registration(observer: observer, subject: subject)
        // A late one hears what is waiting for the others.
        for other in registrations where other.observer == observer {
            new.replayable |= other.replayable
            new.replayableToo |= other.replayableToo
        }
        new.replayableToo |= unread
        registrations.append(new)
        let contract = contracts[observer]
        for _ in 0..<contract.unposted { allowEachName(registrations.count - 1, contract.unpostedRow) }
        allowIfUnheard(registrations.count - 1)
        for other in registrations where other.observer == observer && other.unposted != .zero {
            let names = other.unposted &* Subject.each(subject)
            let more = registrations[registrations.count - 1].unposted .< names
            registrations[registrations.count - 1].unposted.replace(with: names, where: more)
        }
    }

    mutating func cancel(_ registration: Int) { registrations[registration].isCancelled = true }

    /// The bus has the rules for a subject, so its registrations are confirmed.
    mutating func confirmed(_ observer: SimulatedObserver, _ subject: Int) {
        let contract = contracts[observer.number]
        if contract.isNew, contract.pending == 0, !contract.isDisturbed {
            contracts[observer.number] = .settled(.foreground)
        }
        for index in registrations.indices {
            let registration = registrations[index]
            guard registration.observer == observer.number, registration.subject == subject, registration.from == nil
            else { continue }
            registrations[index].from = postCount
        }
    }

    // MARK: - Changes

    /// A request for a state begins; nil if it is unknown which state will follow.
    mutating func changeBegins(_ observer: Int, _ state: LifecycleState?) {
        var contract = contracts[observer]
        let old = contract.known
        contract.pending += 1
        contract.wanted = state
        if old != nil { (contract.mayDrop, contract.mayReplay) = (false, false) }
        for one in [old, state] where one == .background { contract.mayDrop = true }
        for one in [old, state] where one == .suspended { contract.mayReplay = true }
        if state == nil {
            (contract.mayDrop, contract.mayReplay, contract.isDisturbed) = (true, true, true)
            contract.isOnlyStopped = false
        }
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
            if contracts[observer].pending > 1 { stoppedChanging.insert(observer) }
            // If it is parked on its way, the agent keeps what arrives meanwhile.
            contracts[observer].mayReplay = true
            if contract.mayReplay || stoppedSuspended.contains(observer) {
                allowEachName(of: observer, .resumeDisturbed)
            }
        }
        if state != .foreground, state != .suspended { forgive(observer, contract.row, alsoDue: contract.isDisturbed) }
    }

    mutating func changeEnded(_ observer: Int, _ state: LifecycleState?, isDone: Bool) {
        contracts[observer].pending -= 1
        if !isDone || state == nil {
            (contracts[observer].isDisturbed, contracts[observer].isOnlyStopped) = (true, false)
        }
        // The last of several requests wins, in whatever order they are answered.
        guard contracts[observer].pending == 0, let wanted = contracts[observer].wanted,
            !contracts[observer].isDisturbed || contracts[observer].isOnlyStopped && wanted != .foreground
        else { return }
        settle(observer, in: wanted)
        contracts[observer].isByPerson = true
    }

    /// A request has been answered, and the agent has not heard of this observer yet.
    mutating func isNotRegistered(_ observer: Int) {
        guard contracts[observer].known == nil else { return }
        contracts[observer].row = .notRegistered
        (contracts[observer].mayDrop, contracts[observer].mayReplay) = (true, true)
    }

    mutating func settle(_ observer: Int, in state: LifecycleState) {
        if stoppedChanging.contains(observer) {
            (contracts[observer].isDisturbed, contracts[observer].isOnlyStopped) = (true, false)
            return
        }
        let old = contracts[observer]
        contracts[observer] = .settled(state)
        (contracts[observer].told, contracts[observer].unheard) = (old.told, old.unheard)
        if state == .suspended || stopped.contains(observer) {
            contracts[observer].agentLost = old.agentLost
            (contracts[observer].unposted, contracts[observer].unpostedRow) = (old.unposted, old.unpostedRow)
        }
        if state == .foreground, stopped.contains(observer) { disturb(observer, .stopped, drops: false) }
        guard state == .background else { return }
        forgive(observer, .goingToBackground, alsoDue: false)
        for index in registrations.indices where registrations[index].observer == observer {
            (registrations[index].replayable, registrations[index].replayableToo) = (0, 0)
            // One that is stopped may still find in its stream that it is in the foreground.
            if stopped.contains(observer) {
                registrations[index].unpostedRow = .stopped
            } else {
                registrations[index].unposted = .zero
            }
        }
    }

    /// Whatever has not been heard so far need not be heard.
    mutating func forgive(_ observer: Int, _ row: Row, alsoDue: Bool) {
        for index in registrations.indices where registrations[index].observer == observer {
            tolerate(row, registrations[index].cover.nonzeroBitCount)
            registrations[index].cover = 0
            guard alsoDue else { continue }
            tolerate(row, registrations[index].due.nonzeroBitCount)
            registrations[index].due = 0
        }
    }

    /// The desktop changes, so the observer's state is unknown until the agent says that the change is in force.
    mutating func desktopChanges(_ observer: Int) {
        if contracts[observer].known != nil, contracts[observer].isByPerson { return }
        changeBegins(observer, nil)
        contracts[observer].row = .goingToBackground
        changeEnded(observer, nil, isDone: true)
    }

    /// The agent says that the desktop's change is in force.
    mutating func desktopIsFollowed(_ observer: Int, _ state: LifecycleState) {
        guard contracts[observer].pending == 0, !stopped.contains(observer) else { return }
        settle(observer, in: state)
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
    var answers = 0
}
