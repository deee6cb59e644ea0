// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyCore
import Synchronization

/// What comes from a bus: posts of all names, counted as they come, and what the agent says about who observes.
final class Feed: Sendable {
    private struct Contents {
        var counts: [NotifyName: UInt64] = [:]
        var observers: [AgentInterface.ListEntry]??
        var isBusAway: Bool?
        var isAsking = false
    }

    /// Learns when somebody comes, goes or changes state, and has the agent asked.
    private final class Peer: BusPeer {
        private static let bus = "org.freedesktop.DBus"
        let changed: @Sendable () -> Void

        init(changed: @escaping @Sendable () -> Void) {
            self.changed = changed
        }

        var keepsConnection: Bool { true }

        func linkIsReady(_ link: borrowing BusLink) {
            let owners = "type='signal',sender='\(Peer.bus)',interface='\(Peer.bus)',member='NameOwnerChanged'"
            let states =
                "type='signal',sender='\(AgentInterface.name)',interface='\(AgentInterface.name)',"
                + "member='\(AgentInterface.StateChanged.member)'"
            for rule in [owners, states] { link.callBus("AddMatch", [.string(rule)]) { _, _ in } }
            changed()
        }

        func linkIsLost(_ error: NotifyBusError) { changed() }
        func handle(_ call: BusCall, on link: borrowing BusLink) -> Bool { false }
        func handle(_ signal: BusSignal, on link: borrowing BusLink) {
            for case .descriptor(let descriptor) in signal.arguments where descriptor >= 0 { close(descriptor) }
            changed()
        }
    }

    /// Somebody who comes registers a moment later.
    private static let delay: Int64 = 200_000_000

    private let contents = Mutex(Contents())
    /// When the agent is to be asked next, on the monotonic clock.
    private let nextQuestion = Mutex<Int64?>(nil)
    private let wakeup: WakeDescriptor
    private let posts: NotifyCenter
    private let agent: NotifyCenter
    private let observation: Mutex<NotifyCenter.Observation?>

    /// Comes back when no post is missed any more.
    init(_ bus: NotifyCenter.Bus) throws(TopFailure) {
        do throws(ResourceError) {
            wakeup = try .ofCommand()
        } catch {
            throw TopFailure(error.message)
        }
        observation = Mutex(nil)
        let box = Box()
        posts = NotifyCenter(bus: bus) { change in
            if case .disconnected = change { box.feed?.bus(isAway: true) } else { box.feed?.bus(isAway: false) }
        }
        agent = NotifyCenter(bus: bus, peer: Peer { box.feed?.askForObservers(at: Clock.monotonic + Feed.delay) })
        box.set(self)
        do throws(NotifyBusError) {
            let made = try posts.addObserver(for: .prefixes([""]), timeout: nil) { box.feed?.heard($0) }
            observation.withLock { $0 = made }
            try agent.open()
        } catch {
            throw TopFailure(error)
        }
        askForObservers(at: 0)
    }

    /// What the callbacks of the centers refer to: it must not keep the feed alive.
    private final class Box: Sendable {
        private struct Reference: Sendable { weak var feed: Feed? }
        private let reference = Mutex(Reference())
        var feed: Feed? { reference.withLock { $0.feed } }
        func set(_ feed: Feed) { reference.withLock { $0.feed = feed } }
    }

    private func heard(_ name: NotifyName) {
        let isFirst = contents.withLock { contents in
            let isFirst = contents.counts.isEmpty
            contents.counts[name, default: 0] += 1
            return isFirst
        }
        if isFirst { wakeup.signal() }
    }

    private func bus(isAway: Bool) {
        contents.withLock { $0.isBusAway = isAway }
        wakeup.signal()
    }

    /// Has the agent asked at that moment of the monotonic clock, or earlier if that is arranged.
    func askForObservers(at moment: Int64) {
        nextQuestion.withLock { $0 = min($0 ?? .max, moment) }
        contents.withLock { $0.isAsking = true }
        wakeup.signal()
    }

    /// Whether nothing that was asked for is still to come.
    var hasAnswered: Bool { contents.withLock { !$0.isAsking } }

    private func ask() {
        agent.perform { [self] link in
            link.call(AgentInterface.List()) { answer, _ in
                let observers = try? answer.get().connections
                self.contents.withLock { contents in
                    contents.observers = .some(observers)
                    contents.isAsking = false
                }
                self.wakeup.signal()
            }
        }
    }

    /// Sleeps until something has come, one of the descriptors can be read, or the deadline has passed.
    ///
    /// - Returns: which of the descriptors can be read.
    @discardableResult
    func sleep(until deadline: Deadline?, beside descriptors: [Int32]) -> [Bool] {
        var timeout = deadline?.milliseconds ?? -1
        if let moment = nextQuestion.withLock({ $0 }) {
            let left = Int32(clamping: (max(0, moment - Clock.monotonic) + 999_999) / 1_000_000)
            timeout = timeout < 0 ? left : min(timeout, left)
        }
        var sources = ([wakeup.descriptor] + descriptors).map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        poll(&sources, nfds_t(sources.count), timeout)
        if sources[0].revents != 0 { wakeup.clear() }
        let isDue = nextQuestion.withLock { moment in
            guard let due = moment, due <= Clock.monotonic else { return false }
            moment = nil
            return true
        }
        if isDue { ask() }
        return sources.dropFirst().map { $0.revents != 0 }
    }

    /// Enters what has come.
    ///
    /// - Returns: whether anything has.
    @discardableResult
    func take(into model: inout Model) -> Bool {
        let contents = contents.withLock { contents in
            defer { (contents.counts, contents.observers, contents.isBusAway) = ([:], nil, nil) }
            return contents
        }
        let (moment, timeOfDay) = (Clock.monotonic, Clock.timeOfDay)
        for (name, count) in contents.counts { model.heard(name, count, at: moment, timeOfDay: timeOfDay) }
        if let observers = contents.observers { model.observers = observers }
        if let isAway = contents.isBusAway { model.isBusAway = isAway }
        return !contents.counts.isEmpty || contents.observers != nil || contents.isBusAway != nil
    }
}
