// SPDX-License-Identifier: Apache-2.0

import NotifyCore
import NotifyNames

// What can go wrong, and which promises no longer hold then.
extension Oracle {
    /// Something has happened to an observer that no promise covers.
    mutating func disturb(_ observer: Int, _ row: Row, drops: Bool) {
        contracts[observer].row = row
        contracts[observer].isDisturbed = true
        contracts[observer].isOnlyStopped = false
        if contracts[observer].known != nil {
            (contracts[observer].mayDrop, contracts[observer].mayReplay) = (false, false)
        }
        contracts[observer].mayDrop = contracts[observer].mayDrop || drops
        contracts[observer].mayReplay = true
        contracts[observer].known = nil
    }

    /// - Parameter unread: posts that the agent was sent on behalf of others, and reads when it also holds the names for
    ///   this one.
    mutating func processStopped(_ observer: Int, unread: UInt64) {
        stopped.insert(observer)
        if contracts[observer].known == nil { stoppedChanging.insert(observer) }
        let mayBeSuspended = contracts[observer].known == nil && contracts[observer].mayReplay
        if contracts[observer].known == .suspended || mayBeSuspended { stoppedSuspended.insert(observer) }
        // If it is parked while it is being resumed, it does not know that the agent has what was posted.
        if contracts[observer].known == nil, contracts[observer].mayReplay {
            allowEachName(of: observer, .resumeDisturbed)
        }
        if contracts[observer].known == .background || contracts[observer].known == .suspended { return }
        let isDisturbed = contracts[observer].isDisturbed
        disturb(observer, .stopped, drops: false)
        contracts[observer].isOnlyStopped = !isDisturbed
        var queued: UInt64 = 0
        for one in registrations where one.observer == observer { queued |= one.due | one.cover | one.possible }
        for index in registrations.indices where registrations[index].observer == observer {
            // The agent reads them and keeps only their names, which later registrations hear as well.
            registrations[index].cover |= registrations[index].due
            registrations[index].replayableToo |= queued | unread
            registrations[index].due = 0
            if contracts[observer].mayDrop { registrations[index].cover = 0 }
        }
    }

    /// The agent has noticed that a program is stopped.
    mutating func stopIsNoticed(_ observer: Int, told: UInt8) { contracts[observer].told = told }

    /// The agent is about to end the connection of a stopped program.
    mutating func isParked(_ observer: Int) {
        contracts[observer].unheard = ~contracts[observer].told
        for index in registrations.indices where registrations[index].observer == observer { allowIfUnheard(index) }
    }

    mutating func isRegisteredAgain(_ observer: Int) {
        (contracts[observer].told, contracts[observer].unheard) = (0, 0)
    }

    /// Posts of what the program adds may be heard by no connection until it has registered again.
    mutating func allowIfUnheard(_ registration: Int) {
        let (observer, subject) = (registrations[registration].observer, registrations[registration].subject)
        guard contracts[observer].unheard >> UInt8(subject) & 1 == 1 else { return }
        if Subject.isPrefix(subject) {
            allowEachName(of: observer, .addedWhileParked)
            return
        }
        // Others hear it with this one.
        for index in registrations.indices
        where registrations[index].observer == observer && Subject.matches(registrations[index].subject, subject) {
            registrations[index].unposted[subject] += 1
            registrations[index].unpostedRow = .addedWhileParked
        }
    }

    /// A post is in the stream of a stopped program, and the agent hears it as well. Its name may be kept from each.
    mutating func standsTwice(_ name: Int, _ observer: Int) {
        for index in registrations.indices
        where registrations[index].observer == observer && Subject.matches(registrations[index].subject, name) {
            registrations[index].unposted[name] += 1
            registrations[index].unpostedRow = .stopped
        }
    }

    /// The connection was lost before the bus said who had sent a post, so it is unknown whether it is genuine.
    mutating func wasHeldBack(_ name: Int, _ observer: Int) {
        for index in registrations.indices
        where registrations[index].observer == observer && Subject.matches(registrations[index].subject, name) {
            registrations[index].unposted[name] += 1
            registrations[index].unpostedRow = stopped.contains(observer) ? .stopped : .connectionLost
        }
    }

    /// There was no room for names that were posted, and the agent has counted them.
    mutating func overflowed(_ observer: Int, _ names: [NotifyName]) {
        for index in registrations.indices where registrations[index].observer == observer {
            for name in names.compactMap(Subject.number) {
                tolerate(.noRoom, (registrations[index].cover & masks[name]).nonzeroBitCount)
                registrations[index].cover &= ~masks[name]
            }
        }
    }

    /// The bus no longer knows who made these posts of a name that has an owner.
    mutating func posterIsLost(_ posts: [Int]) {
        let mask = posts.reduce(UInt64(0)) { $0 | 1 << UInt64($1) }
        for index in registrations.indices {
            tolerate(.connectionLost, ((registrations[index].due | registrations[index].cover) & mask).nonzeroBitCount)
            registrations[index].due &= ~mask
            registrations[index].cover &= ~mask
        }
    }

    mutating func connectionLost(_ observer: Int) {
        let row: Row = contracts[observer].known == nil ? .lostWhileChanging : .connectionLost
        let isListening = contracts[observer].known == .foreground
        disturb(observer, row, drops: !isListening)
        if isListening {
            contracts[observer].isCutOff = true
            for index in registrations.indices where registrations[index].observer == observer {
                registrations[index].cover |= registrations[index].due
                registrations[index].due = 0
            }
        } else {
            forgive(observer, row, alsoDue: true)
        }
        allowEachName(of: observer, .connectionLost)
    }

    /// The agent has died, and its knowledge is lost.
    mutating func agentDied() { contracts.indices.forEach { agentDied(for: $0) } }

    mutating func agentDied(for observer: Int) {
        isRegisteredAgain(observer)
        if contracts[observer].known != nil, stopped.contains(observer) {
            // It was stopped, so it does not know what was set meanwhile.
            disturb(observer, .agentDied, drops: true)
            forgive(observer, .agentDied, alsoDue: false)
        }
        switch contracts[observer].known {
        case .foreground, .background: break
        case .suspended, nil:
            contracts[observer].agentLost = true
            contracts[observer].row = .agentDied
            (contracts[observer].isDisturbed, contracts[observer].isOnlyStopped) = (true, false)
            contracts[observer].mayReplay = true
            allowEachName(of: observer, .agentDied)
        }
    }

    /// The bus has ended, and another will know nothing.
    ///
    /// - Parameter begins: whether the observer will be in the foreground again, once its registrations are confirmed.
    mutating func busIsGone(_ observer: Int, begins: Bool) {
        let row: Row = contracts[observer].known == nil ? .lostWhileChanging : .connectionLost
        disturb(observer, row, drops: true)
        forgive(observer, row, alsoDue: true)
        if begins {
            contracts[observer].isNew = true
            contracts[observer].isDisturbed = false
        }
        for index in registrations.indices where registrations[index].observer == observer {
            registrations[index].from = nil
        }
        allowEachName(of: observer, .connectionLost)
    }

    mutating func allowEachName(of observer: Int, _ row: Row) {
        contracts[observer].unposted += 1
        contracts[observer].unpostedRow = row
        for index in registrations.indices where registrations[index].observer == observer { allowEachName(index, row) }
    }

    mutating func allowEachName(_ registration: Int, _ row: Row) {
        let subject = registrations[registration].subject
        registrations[registration].unpostedRow = row
        if Subject.isPrefix(subject) {
            // It is unknown which names match.
            tolerate(row, registrations[registration].cover.nonzeroBitCount)
            registrations[registration].cover = 0
            // Another registration may observe them by name.
            registrations[registration].unposted &+= Subject.each(subject)
        } else {
            registrations[registration].unposted[subject] += 1
        }
    }

    /// An observer gives up waiting for its agent.
    mutating func deadlinePassed(_ observer: SimulatedObserver) {
        let number = observer.number
        if observer.agent != nil {
            // It does not say whether it holds what was added.
            guard observer.gate == .closed else { return }
            contracts[number].agentLost = true
            return allowEachName(of: number, .agentDied)
        }
        switch contracts[number].known {
        case .foreground:
            (contracts[number].isDisturbed, contracts[number].isOnlyStopped) = (true, false)
            contracts[number].isByPerson = false
            // Another connection of the process may tell the next agent what the program has reported.
            let together = reportedTogether[observer.process]
            if together.contains(where: { contracts[$0].known != .foreground }) {
                disturb(number, .goingToBackground, drops: true)
            }
        case nil:
            (contracts[number].isDisturbed, contracts[number].isOnlyStopped) = (true, false)
            allowEachName(of: number, .agentDied)
        case .background: disturb(number, .comingFromBackground, drops: true)
        case .suspended:
            disturb(number, .agentDied, drops: false)
            allowEachName(of: number, .agentDied)
        }
    }

    /// A post was torn: the process has read its beginning.
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
}
