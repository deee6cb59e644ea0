// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyNames

// What programs ask the bus for, and a person the agent.
extension World {
    // MARK: - Registrations

    func register(_ observer: Int, _ subject: Int) {
        let program = observers[observer]
        if program.hasEnded || processes[program.process].isStopped { return }
        // A center whose bus is gone refuses.
        if program.connection == nil, !program.subjects.isEmpty, !program.subjects.contains(subject), steps > 0 {
            return
        }
        registrations.append(Registration(observer: observer, subject: subject))
        oracle.register(observer, subject, unread: unreadPosts)
        let wasActive = program.isActive(subject)
        program.observe(subject, as: registrations.count - 1, self)
        if wasActive { program.isConfirmed(subject, self) }
    }

    func cancel(_ number: Int) {
        guard registrations.indices.contains(number), !registrations[number].isCancelled else { return }
        let (observer, subject) = (registrations[number].observer, registrations[number].subject)
        if hasEndedOrStopped(observer) { return }
        registrations[number].isCancelled = true
        oracle.cancel(number)
        observesNoMore(observer, subject)
        observers[observer].observeNoMore(subject, as: number, self)
        if !observers[observer].observes(subject), nameStates[subject]?.setter == observer {
            nameStates[subject]?.setter = nil
        }
    }

    // MARK: - Requests

    var observersOfApplication: [Int] {
        observers.indices.filter { setting.applications.contains(observers[$0].process) }
    }

    func request(_ targets: [Int], _ state: LifecycleState?, by person: Int, _ make: (Int) -> PeerMessage) {
        guard let agent = bus.agent else { return }
        // Only an exempt program itself changes its state.
        let observers = targets.filter { !isExempt(self.observers[$0]) }
        lastSerial += 1
        // The target may also be its process.
        requests.append(Request(serial: lastSerial, observers: observers, state: state))
        for observer in observers { oracle.changeBegins(observer, state) }
        bus.write(.send(to: bus[agent].name, make(lastSerial)), controls[person])
    }

    /// The bus has passed on a request: of those by several persons, the agent hears this one last.
    func requestIsPassed(_ serial: Int) {
        guard let request = requests.first(where: { $0.serial == serial }) else { return }
        for observer in request.observers { oracle.contracts[observer].wanted = request.state }
    }

    /// The agent answers a request, which does not cover programs that have not registered yet.
    func agentAnswers(_ serial: Int, to name: String) {
        guard controls.contains(where: { bus[$0].name == name }) else { return }
        meantBy[serial] = observers.filter { observer in
            guard let connection = observer.connection else { return false }
            return agent?.id(of: bus[connection].name) != nil
        }.map(\.number)
    }

    func readAnswer(_ person: Int) {
        guard let message = bus[controls[person]].inbox.popFirst() else { return }
        switch message {
        case .peer(_, .done(let serial)): requestEnded(serial, isDone: true)
        case .peer(_, .refused(let serial)), .failed(let serial): requestEnded(serial, isDone: false)
        default: break
        }
    }

    func requestEnded(_ serial: Int, isDone: Bool) {
        guard let place = requests.firstIndex(where: { $0.serial == serial }) else {
            return oracle.fail("request \(serial) is answered twice")
        }
        let request = requests.remove(at: place)
        note("request \(serial) is \(isDone ? "in force" : "refused")")
        let meant = meantBy.removeValue(forKey: serial) ?? []
        for observer in request.observers {
            if isDone, !meant.contains(observer) { oracle.isNotRegistered(observer) }
            oracle.changeEnded(observer, request.state, isDone: isDone && meant.contains(observer))
        }
    }
}
