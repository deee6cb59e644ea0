// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyCore
import Synchronization

/// The data from a bus: posts of all names, counted as they come, and the agent's list of observers.
final class Feed: Sendable {
    private struct Contents {
        var counts: [NotifyName: UInt64] = [:]
        /// Posts of further names, once there are too many.
        var others: UInt64 = 0
        /// The unique name of the connection that last posted each name.
        var senders: [NotifyName: String] = [:]
        /// The processes behind the connections for which the bus has answered since the last check.
        var posters: [String: PostingProcess] = [:]
        /// The connections about which the bus was asked.
        var asked: Set<String> = []
        /// The agent's last reply.
        var observers: Result<[AgentInterface.ListEntry], BusFault>?
        var isBusAway: Bool?
        /// When to ask the agent next, on the monotonic clock.
        var nextQuestion: Int64?
        /// Whether it was asked and has not answered yet.
        var isAsking = false
        /// Whether the bus was restarted, so that unique names stand for other connections.
        var isOnAnotherBus = false
    }

    /// Notices when observers come, go or change state, and requests the list from the agent.
    private final class Peer: BusPeer {
        private weak var link: BusLink?
        let changed: () -> Void
        /// The bus was restarted.
        let moved: () -> Void
        /// A connection is new. It may do nothing but post, and be gone immediately afterwards.
        let appeared: (String, BusLink) -> Void

        init(
            changed: @escaping () -> Void,
            moved: @escaping () -> Void,
            appeared: @escaping (String, BusLink) -> Void
        ) {
            self.changed = changed
            self.moved = moved
            self.appeared = appeared
        }

        var keepsConnection: Bool { true }

        func linkIsReady(_ link: BusLink) {
            // Posts may have been heard before the first connection was ready.
            if self.link != nil, link.isOnAnotherBus { moved() }
            self.link = link
            let states =
                "type='signal',sender='\(AgentInterface.name)',interface='\(AgentInterface.name)',"
                + "member='\(AgentInterface.StateChanged.member)'"
            for rule in [OwnerChange.rule(of: nil), states] { link.callBus("AddMatch", [.string(rule)]) { _ in } }
            changed()
        }

        func linkIsLost(_ error: NotifyBusError) { changed() }
        func handle(_ call: BusCall) -> Bool { false }
        func handle(_ signal: BusSignal) {
            signal.arguments.closeDescriptors()
            if let link, let change = OwnerChange(signal), change.name.hasPrefix(":"), change.owner == change.name {
                appeared(change.name, link)
            }
            changed()
        }
    }

    /// A new connection registers a moment later.
    private static let delay: Int64 = 200_000_000

    private let contents = Mutex(Contents())
    private let wakeup: WakeDescriptor
    private let posts: NotifyCenter
    private let agent: NotifyCenter
    private let observation: Mutex<NotifyCenter.Observation?>

    /// Returns once no post is missed any more.
    init(_ bus: NotifyCenter.Bus) throws(CommandFailure) {
        wakeup = try .ofCommand()
        observation = Mutex(nil)
        let box = Box()
        posts = NotifyCenter(bus: bus) { change in
            box.feed?.bus(isAway: change.kind == .disconnected)
        } onPost: { name, sender in
            box.feed?.noteSender(sender, of: name)
        }
        let peer = Peer {
            box.feed?.askForObservers(at: Clock.monotonic + Feed.delay)
        } moved: {
            box.feed?.forgetSenders()
        } appeared: { name, link in
            box.feed?.ask(whoIs: name, on: link)
        }
        agent = NotifyCenter(bus: bus, peer: peer)
        box.set(self)
        do throws(NotifyBusError) {
            let made = try posts.addObserver(matching: .everything, timeout: .seconds(25)) { box.feed?.heard($0) }
            observation.withLock { $0 = made }
            try agent.open()
        } catch {
            throw CommandFailure(lateBus: error)
        }
        askForObservers(at: 0)
    }

    /// Why only part of what is on the bus can be seen here; nil if all can.
    var obstacle: String? { posts.obstacleToHearing }

    /// The object to which the callbacks of the centers refer, which must not keep the feed alive.
    private final class Box: Sendable {
        private struct Reference: Sendable { weak var feed: Feed? }
        private let reference = Mutex(Reference())
        var feed: Feed? { reference.withLock { $0.feed } }
        func set(_ feed: Feed) { reference.withLock { $0.feed = feed } }
    }

    private func heard(_ name: NotifyName) {
        let isFirst = contents.withLock { contents in
            let isFirst = contents.counts.isEmpty
            // While the terminal takes no output, the view does not take these.
            if contents.counts.count < Model.limit || contents.counts[name] != nil {
                contents.counts[name, default: 0] += 1
            } else {
                contents.others += 1
            }
            return isFirst
        }
        if isFirst { wakeup.signal() }
    }

    /// How many connections are remembered; beyond that the bus is asked again.
    private static let limit = 4_096

    private func noteSender(_ sender: UnsafePointer<CChar>, of name: NotifyName) {
        let sender = String(cString: sender)
        let isKnown = contents.withLock { contents in
            if contents.senders.count < Model.limit || contents.senders[name] != nil { contents.senders[name] = sender }
            return contents.asked.contains(sender)
        }
        if !isKnown { agent.perform { [weak self] link in self?.ask(whoIs: sender, on: link) } }
    }

    /// Asks the bus for the process of a connection, once.
    private func ask(whoIs sender: String, on link: BusLink) {
        let isNew = contents.withLock { contents in
            if contents.asked.count >= Feed.limit { contents.asked = [] }
            return contents.asked.insert(sender).inserted
        }
        guard isNew else { return }
        link.callBus("GetConnectionUnixProcessID", [.string(sender)]) { [weak self] answer in
            guard let self, let process = (try? answer.get())?.first?.uint32 else { return }
            let poster = PostingProcess(process: process)
            contents.withLock { if $0.posters.count < Feed.limit { $0.posters[sender] = poster } }
            wakeup.signal()
        }
    }

    private func forgetSenders() {
        contents.withLock { contents in
            (contents.asked, contents.senders, contents.posters) = ([], [:], [:])
            contents.isOnAnotherBus = true
        }
        wakeup.signal()
    }

    private func bus(isAway: Bool) {
        contents.withLock { $0.isBusAway = isAway }
        wakeup.signal()
    }

    /// Schedules a request to the agent at that time of the monotonic clock, unless one is scheduled earlier. It waits
    /// for the reply to the previous one: that may be older than what is to be learned.
    func askForObservers(at moment: Int64) {
        contents.withLock { $0.nextQuestion = min($0.nextQuestion ?? .max, moment) }
        wakeup.signal()
    }

    /// Whether no request is scheduled, and no reply is pending.
    var hasAnswered: Bool { contents.withLock { !$0.isAsking && $0.nextQuestion == nil } }

    private func ask() {
        agent.perform { [self] link in
            link.callAgent(AgentInterface.List()) { answer in
                let observers = answer.reading(AgentInterface.List.self).map(\.connections)
                self.contents.withLock { contents in
                    contents.observers = observers
                    contents.isAsking = false
                }
                self.wakeup.signal()
            }
        }
    }

    /// Sleeps until something has come, one of the descriptors is readable, or the deadline has passed.
    ///
    /// - Returns: which of the descriptors are readable.
    @discardableResult
    func sleep(until deadline: Deadline?, beside descriptors: [Int32]) -> [Bool] {
        var timeout = deadline?.milliseconds ?? -1
        if let moment = contents.withLock({ $0.isAsking ? nil : $0.nextQuestion }) {
            let left = Int32(clamping: (max(0, moment - Clock.monotonic) + 999_999) / 1_000_000)
            timeout = timeout < 0 ? left : min(timeout, left)
        }
        var sources = ([wakeup.descriptor] + descriptors).map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        poll(&sources, nfds_t(sources.count), timeout)
        if sources[0].revents != 0 { wakeup.clear() }
        let isDue = contents.withLock { contents in
            guard !contents.isAsking, let due = contents.nextQuestion, due <= Clock.monotonic else { return false }
            (contents.nextQuestion, contents.isAsking) = (nil, true)
            return true
        }
        if isDue { ask() }
        return sources.dropFirst().map { $0.revents != 0 }
    }

    /// Processes what has come.
    ///
    /// - Returns: whether there was anything.
    @discardableResult
    func take(into model: inout Model) -> Bool {
        let contents = contents.withLock { contents in
            defer {
                // The callback that counts a post comes after the information who made it.
                let counts = contents.counts
                contents.senders = contents.senders.filter { counts[$0.key] == nil }
                (contents.counts, contents.observers, contents.isBusAway, contents.posters) = ([:], nil, nil, [:])
                (contents.others, contents.isOnAnotherBus) = (0, false)
            }
            return contents
        }
        let (moment, timeOfDay) = (Clock.monotonic, Clock.timeOfDay)
        for (name, count) in contents.counts { model.heard(name, count, at: moment, timeOfDay: timeOfDay) }
        model.heardOthers(contents.others, at: moment, timeOfDay: timeOfDay)
        if contents.isOnAnotherBus { model.forgetSenders() }
        for (name, sender) in contents.senders { model.note(sender: sender, of: name) }
        let namesPoster = model.learn(contents.posters)
        if let observers = contents.observers { model.learn(observers) }
        if let isAway = contents.isBusAway { model.isBusAway = isAway }
        return !contents.counts.isEmpty || namesPoster || contents.observers != nil || contents.isBusAway != nil
            || contents.isOnAnotherBus
    }
}
