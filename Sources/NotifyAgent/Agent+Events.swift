// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore
import NotifyEvents

// What happens to the machine and the session, as posts and states of names.
extension Agent {
    func handle(_ input: EventTable.Input, on link: borrowing BusLink) {
        perform(eventPart.handle(input), on: link)
    }

    /// Answers a question for the state of a name; that of an event when its source has spoken.
    func answerState(of name: NotifyName, _ call: BusCall, on link: borrowing BusLink) {
        guard eventPart.names.contains(name) else {
            return handle(.getNameState(face.keep(call), name), on: link)
        }
        perform(eventPart.ask(name, call), on: link)
    }

    private func perform(_ errands: [EventPart.Errand], on link: borrowing BusLink) {
        for errand in errands {
            switch errand {
            case .set(let name, let state): handle(.eventState(name, state), on: link)
            case .post(let name, let isAlias):
                let observed = coordinator.observedNames
                guard isAlias ? observed.containsExactly(name) : observed.contains(name) else { continue }
                link.post(name)
                eventPart.hasPosted(name)
            case .answer(let number):
                guard let (call, name) = eventPart.takeQuestion(number) else { continue }
                handle(.getNameState(face.keep(call), name), on: link)
            case .alarm(let time): alarms.set(.events, at: time)
            }
        }
    }
}

/// Who wants to be woken when: the watcher has one timer for all.
struct Alarms {
    enum Owner {
        case coordinator, events
    }

    private var times: [Owner: Int64] = [:]
    private let watcher: Watcher

    init(_ watcher: Watcher) { self.watcher = watcher }

    /// A later call of the same owner takes the place of an earlier one.
    mutating func set(_ owner: Owner, at time: Int64) {
        times[owner] = time
        arm()
    }

    /// The timer has fired.
    ///
    /// - Returns: whose time has come.
    mutating func take(now: Int64) -> [Owner] {
        let due = times.filter { $0.value <= now }.sorted { $0.value < $1.value }.map(\.key)
        for owner in due { times[owner] = nil }
        arm()
        return due
    }

    private func arm() {
        if let first = times.values.min() { watcher.alarm(at: first) }
    }
}
