// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore
import NotifyNames

/// 128 bits that stand for the state of a world. Two different states share them by chance once in some 10³⁸ pairs; what
/// they contain of sets and dictionaries is folded into 64 bits each.
struct Fingerprint: Hashable {
    let high: UInt64
    let low: UInt64

    init(_ hasher: Hasher) {
        var more = hasher
        more.combine(1)
        high = UInt64(bitPattern: Int64(hasher.finalize()))
        low = UInt64(bitPattern: Int64(more.finalize()))
    }
}

// What tells two worlds of one setting apart: nothing that a step does depends on anything else. What was counted and
// noted is left out, and so is whatever no longer matters to anybody.
extension World {
    func hash(into hasher: inout Hasher) {
        bus.hash(into: &hasher)
        hasher.combine(processes)
        for observer in observers { observer.hash(into: &hasher) }
        for poster in posters { poster.hash(into: &hasher) }
        hasher.combine(agent != nil)
        agent?.hash(into: &hasher)
        hasher.combine(estate)
        hasher.combine(heldStates)
        hasher.combine(agents)
        hasher.combine(posts)
        oracle.hash(into: &hasher)
        hasher.combine(clock)
        hasher.combine(registrations)
        hasher.combine(requests)
        hasher.combine(meantBy)
        hasher.combine(desktop)
        hasher.combine(nap)
        hasher.combine(nameStates)
        hasher.combine(unansweredSettings)
        hasher.combine(lastSerial)
        hasher.combine(controls)
    }

    /// Forgets what makes no difference: how many questions were asked and answered, and what was heard of which
    /// nothing is under way any more.
    func normalize() {
        for observer in observers { observer.normalize() }
        agent?.normalize()
        lastSerial = requests.reduce(0) { max($0, $1.serial) }
    }

    /// The same, when everything has come to rest and was checked.
    func normalizeAtRest() {
        oracle.normalizeAtRest()
        // Nothing waits for a time. The stamps of names' states must not run backwards, nor the time since a program
        // lost the focus.
        if nameStates.isEmpty, nap.lost == nil { clock = 0 }
    }
}

extension SimulatedObserver {
    func hash(into hasher: inout Hasher) {
        lifecycle.hash(into: &hasher)
        hasher.combine(connection)
        hasher.combine(deadline)
        hasher.combine(hasEnded)
        hasher.combine(topics)
        hasher.combine(generation)
        hasher.combine(reach)
        hasher.combine(lastTopic)
        hasher.combine(heldTopics)
        hasher.combine(commands)
        questions.forEach { serial, question in
            hasher.combine(serial)
            hasher.combine(question)
        }
        senders.hash(into: &hasher)
        hasher.combine(lastSerial)
        hasher.combine(requests)
        hasher.combine(lastRequest)
        hasher.combine(registrations)
        hasher.combine(callbacks)
        hasher.combine(followsDesktop)
        hasher.combine(nameStates)
        hasher.combine(told)
        hasher.combine(wasCutOff)
        hasher.combine(busNumber)
    }

    func normalize() {
        lastSerial = questions.lastSerial
        lastRequest = requests.keys.max() ?? 0
    }
}

extension SimulatedAgent {
    func hash(into hasher: inout Hasher) {
        hasher.combine(connection)
        coordinator.hash(into: &hasher)
        hasher.combine(isAlive)
        hasher.combine(alarm)
        hasher.combine(napAlarm)
        hasher.combine(useQuestion)
        hasher.combine(napping)
        hasher.combine(drains)
        hasher.combine(owned)
        // Each is a class of its own, and most have no content that two worlds could differ in.
        hasher.combine(news.count)
        for event in news.waiting { hasher.combine("\(event)") }
        hasher.combine(looksAt)
        hasher.combine(known)
        hasher.combine(rules)
        questions.forEach { serial, question in
            hasher.combine(serial)
            question.hash(into: &hasher)
        }
        senders.hash(into: &hasher)
        hasher.combine(calls)
        hasher.combine(lastSerial)
        hasher.combine(lastWait)
        hasher.combine(followers)
        hasher.combine(dropped)
        hasher.combine(lastCall)
        hasher.combine(isLeaving)
        hasher.combine(leavesAt)
        hasher.combine(predecessor)
        for call in heldCalls.waiting {
            hasher.combine(call.sender)
            call.message.hash(into: &hasher)
        }
        hasher.combine(heritageAgesAt)
    }

    func normalize() {
        lastSerial = questions.lastSerial
        lastCall = calls.keys.map(\.number).max() ?? 0
    }
}

extension SimulatedAgent.Question {
    func hash(into hasher: inout Hasher) {
        switch self {
        case .rules(let ticket):
            hasher.combine(0)
            hasher.combine(ticket)
        case .mark(let id):
            hasher.combine(1)
            hasher.combine(id)
        case .heldBack(let id):
            hasher.combine(2)
            hasher.combine(id)
        case .whose(let serial, let name, let registration):
            hasher.combine(3)
            hasher.combine(serial)
            hasher.combine(name)
            registration.hash(into: &hasher)
        case .state(let id):
            hasher.combine(4)
            hasher.combine(id)
        case .delivery(let id, let names):
            hasher.combine(5)
            hasher.combine(id)
            hasher.combine(names)
        case .keeping(let id):
            hasher.combine(9)
            hasher.combine(id)
        case .sender(let name):
            hasher.combine(6)
            hasher.combine(name)
        case .poster(let id, let names, let senders), .stream(let id, let names, let senders):
            if case .poster = self { hasher.combine(7) } else { hasher.combine(8) }
            hasher.combine(id)
            hasher.combine(names)
            hasher.combine(senders)
        case .name: hasher.combine(10)
        }
    }
}

extension Oracle {
    func hash(into hasher: inout Hasher) {
        hasher.combine(registrations)
        hasher.combine(contracts)
        hasher.combine(lastHeard)
        hasher.combine(stopped)
        hasher.combine(stoppedSuspended)
        hasher.combine(stoppedChanging)
        hasher.combine(failure)
        hasher.combine(masks)
        hasher.combine(postCount)
    }

    /// Nothing that was posted is on its way.
    mutating func normalizeAtRest() {
        for index in registrations.indices {
            (registrations[index].forbidden, registrations[index].heard) = (0, 0)
            registrations[index].possible = 0
        }
        for index in lastHeard.indices { lastHeard[index] = SIMD2(-1, -1) }
    }
}
