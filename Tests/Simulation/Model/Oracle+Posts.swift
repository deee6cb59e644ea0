// SPDX-License-Identifier: Apache-2.0

import NotifyCore
import NotifyNames

// Each post is judged when the bus routes it, when it is heard, and at rest.
extension Oracle {
    mutating func posted(_ post: Post) {
        masks[post.name] |= 1 << UInt64(postCount)
        posters.append((post.poster, post.connection))
        postCount += 1
    }

    /// The bus has routed a post.
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
                if contract.agentLost, Subject.isPrefix(registration.subject) {
                    tolerate(.agentDied)
                } else {
                    registrations[index].cover |= bit
                }
            case nil:
                registrations[index].possible |= bit
                if contract.mayReplay { registrations[index].replayableToo |= bit }
                guard isLater else { break }
                if contract.mayDrop {
                    tolerate(contract.row)
                } else if contract.agentLost, Subject.isPrefix(registration.subject) {
                    tolerate(.agentDied)
                } else if contract.isCutOff, Subject.isPrefix(registration.subject) {
                    tolerate(.connectionLost)
                } else {
                    registrations[index].cover |= bit
                }
            }
        }
    }

    /// An observer has heard a post in order.
    ///
    /// - Parameter audience: the registrations that it calls.
    mutating func heard(_ number: Int, _ name: Int, _ observer: Int, by audience: [Int]) {
        let bit: UInt64 = 1 << UInt64(number)
        let (poster, connection) = posters[number]
        let last = lastHeard[observer][poster]
        // There is no order between programs, nor between what one posted before and after it lost its connection.
        if last > number, posters[last].connection == connection {
            fail("observer \(observer) hears post \(number) out of order")
        }
        lastHeard[observer][poster] = max(last, number)
        for index in audience {
            let registration = registrations[index]
            checks += 1
            if registration.isCancelled { fail("registration \(index) is called although it was canceled") }
            if registration.forbidden & bit != 0 {
                fail("registration \(index) hears post \(number), which was made in the background or while suspended")
            }
            if registration.heard & bit != 0 { fail("registration \(index) hears post \(number) twice") }
            registrations[index].heard |= bit
            registrations[index].due &= ~bit
            registrations[index].cover &= ~bit
        }
    }

    /// An observer hears a name that was posted while it was not listening.
    mutating func replayed(_ name: Int, _ observer: Int, by audience: [Int]) {
        for index in audience {
            let registration = registrations[index]
            checks += 1
            if registration.isCancelled { fail("registration \(index) is called although it was canceled") }
            let posts = registration.replayable & masks[name]
            let others = registration.replayableToo & masks[name]
            if posts | others == 0 {
                guard registration.unposted[name] > 0 else {
                    fail(
                        "registration \(index) hears \(Subject.texts[name]), which was not posted while it was not listening"
                    )
                    continue
                }
                tolerate(registration.unpostedRow)
                registrations[index].unposted[name] -= 1
            } else if posts != 0 {
                registrations[index].replayable &= ~masks[name]
            } else {
                // One for each post: each may have been noted separately.
                let post = (others & masks[name]).trailingZeroBitCount
                registrations[index].replayableToo &= ~(1 << UInt64(post))
            }
            if (posts | others) & registration.heard != 0 { tolerate(contracts[observer].row) }
            registrations[index].cover &= ~masks[name]
        }
    }

    /// A callback is called for a name that was queued.
    mutating func isCalled(_ registration: Int) {
        checks += 1
        guard registrations[registration].isCancelled else { return }
        fail("registration \(registration) is called although it was canceled")
    }

    // MARK: - At rest

    /// Nothing is under way, so every promise must have been kept.
    ///
    /// - Parameter observers: those that run, and those that are stopped but know their state.
    mutating func rest(_ observers: [SimulatedObserver], hasAgent: Bool) {
        for observer in observers where !observer.hasEnded {
            stopped.remove(observer.number)
            stoppedSuspended.remove(observer.number)
            stoppedChanging.remove(observer.number)
            let state = observer.state
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
            (contracts[observer.number].told, contracts[observer.number].unheard) = (old.told, old.unheard)
            contracts[observer.number].isByPerson = old.isByPerson && old.known == state
            guard state == .suspended else { continue }
            contracts[observer.number].agentLost = old.agentLost && !hasAgent
            contracts[observer.number].unposted = old.unposted
            contracts[observer.number].unpostedRow = old.unpostedRow
        }
    }

    func list(_ posts: UInt64) -> String {
        let numbers = (0..<64).filter { posts >> UInt64($0) & 1 == 1 }
        return "post" + (numbers.count > 1 ? "s " : " ") + numbers.map(String.init).joined(separator: ", ")
    }
}
