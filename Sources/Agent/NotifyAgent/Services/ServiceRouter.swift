// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// Where services are followed.
protocol ServiceBus: AnyObject {
    func add(_ client: any ServiceClient)
    /// After this the client is told nothing more.
    func remove(_ client: any ServiceClient)
}

/// A part that follows a service on a bus: is told when it comes and goes, and hears its signals.
protocol ServiceClient: AnyObject {
    var service: FollowedService { get }
    /// A connection owns the service's name.
    func serviceHasCome(_ service: Service)
    /// The service has sent a signal.
    func handle(_ signal: BusSignal)
    /// The name has no owner, for this reason.
    func serviceIsAway(_ reason: String)
    /// The service is there, but has not answered a question in time: nothing counts that it has said or may still say.
    /// After a while it comes again.
    func serviceIsSilent(_ reason: String)
}

extension ServiceClient {
    func serviceIsSilent(_ reason: String) { serviceIsAway(reason) }
}

/// What there is to know in advance of a service that is followed.
struct FollowedService: Sendable {
    /// Its well-known name.
    let name: String
    /// What people call it.
    let title: String
    /// Which of its signals are wanted: the rest of match rules, behind the sender.
    let signals: [String]
    /// Whether the bus is to start it.
    var isActivated = false
}

/// A service, for as long as one connection owns its name.
final class Service {
    /// The unique name of that connection, which no other connection can have.
    let owner: String
    private(set) var isThere = true
    private let link: BusLink
    private let presentLater: (Service) -> Void
    private let isSilent: (Service, _ question: String) -> Void

    init(
        owner: String,
        on link: BusLink,
        presentLater: @escaping (Service) -> Void,
        isSilent: @escaping (Service, _ question: String) -> Void
    ) {
        (self.owner, self.link, self.presentLater, self.isSilent) = (owner, link, presentLater, isSilent)
    }

    /// An answer is missing: the client is told once more, after a while, that the service has come.
    func comeAgain() { presentLater(self) }

    func leave() { isThere = false }

    /// Calls a method: the one place where a service is asked. If the answer is missing, the client is told that the
    /// service is silent, and later that it has come.
    ///
    /// - Parameter completion: called with the answer, unless the service has gone or fallen silent meanwhile.
    func call(
        _ member: String,
        of interface: String,
        at path: String,
        _ arguments: [BusValue] = [],
        then completion: @escaping (BusAnswer) -> Void
    ) {
        link.call(owner, path: path, interface: interface, member: member, arguments) { [self] answer in
            guard isThere else { return (try? answer.get())?.closeDescriptors() ?? () }
            if case .failure(let fault) = answer, fault.saysSilent { return isSilent(self, member) }
            completion(answer)
        }
    }

    /// Asks for all properties of an interface.
    ///
    /// - Parameter completion: called with nil if it did not tell.
    func properties(
        of interface: String,
        at path: String,
        then completion: @escaping ([String: BusValue]?) -> Void
    ) {
        call("GetAll", of: PropertyChange.interface, at: path, [.string(interface)]) { answer in
            let values = try? answer.get()
            values?.closeDescriptors()
            completion(values?.first?.dictionary)
        }
    }
}

/// The signal PropertiesChanged. See the D-Bus specification, "Standard Interfaces".
struct PropertyChange {
    static let interface = "org.freedesktop.DBus.Properties"

    /// Whose properties they are.
    let interface: String
    let values: [String: BusValue]
    /// Those that have changed without saying how.
    let invalidated: [String]

    init?(_ signal: BusSignal) {
        guard signal.interface == PropertyChange.interface, signal.member == "PropertiesChanged",
            signal.arguments.count == 3, let interface = signal.arguments[0].string,
            let values = signal.arguments[1].dictionary, let invalidated = signal.arguments[2].strings
        else { return nil }
        self.interface = interface
        self.values = values
        self.invalidated = invalidated
    }
}

/// The services that are followed on one connection: who owns their names, and whom their signals are for.
final class ServiceRouter: ServiceBus {
    private final class Entry {
        let client: any ServiceClient
        /// The connection that owns the name; none if it is empty.
        var owner = ""
        /// What the client knows of it; nil also while it is silent.
        var current: Service?
        /// Has it started again.
        let retry: Retry
        /// Since when it is there.
        var since = MonotonicTime(nanoseconds: 0)
        /// Whether the client is told once more that it is there.
        var comesAgain = false
        /// Counts the questions for its owner: the answer to an earlier one comes too late.
        var round = 0
        var isFollowed = false

        init(_ client: any ServiceClient, on loop: EventLoop) {
            self.client = client
            retry = Retry(on: loop)
        }

        var facts: FollowedService { client.service }

        var rules: [String] {
            [OwnerChange.rule(of: facts.name)] + facts.signals.map { "type='signal',sender='\(facts.name)',\($0)" }
        }

        func leave() {
            current?.leave()
            current = nil
        }

        func loseOwner() {
            leave()
            owner = ""
        }
    }

    private let link: BusLink
    private let loop: EventLoop
    private var entries: [Entry] = []
    private var isReady = false

    init(_ link: BusLink, on loop: EventLoop) { (self.link, self.loop) = (link, loop) }

    // MARK: - Who follows what

    /// Adds a client; it hears of the service as soon as the bus has said whether it is there.
    func add(_ client: any ServiceClient) {
        let entry = Entry(client, on: loop)
        entries.append(entry)
        if isReady { follow(entry) }
    }

    /// After this the client is told nothing more.
    func remove(_ client: any ServiceClient) {
        for entry in entries where entry.client === client {
            entry.loseOwner()
            entry.round += 1
            entry.retry.cancel()
            guard entry.isFollowed else { continue }
            for rule in entry.rules { link.callBus("RemoveMatch", [.string(rule)]) }
        }
        entries.removeAll { $0.client === client }
    }

    // MARK: - The connection

    func linkIsReady() {
        isReady = true
        for entry in entries { follow(entry) }
    }

    func linkIsLost(_ reason: String) {
        isReady = false
        for entry in entries {
            entry.loseOwner()
            entry.round += 1
            entry.retry.reset()
            entry.isFollowed = false
            entry.client.serviceIsAway(reason)
        }
    }

    // MARK: - Owners

    private func follow(_ entry: Entry) {
        entry.isFollowed = true
        for rule in entry.rules { link.callBus("AddMatch", [.string(rule)]) }
        findOwner(entry)
    }

    private func findOwner(_ entry: Entry) {
        entry.round += 1
        let (round, facts) = (entry.round, entry.facts)
        link.findOwner(of: facts.name, activates: facts.isActivated) { [self] answer in
            guard round == entry.round, entry.owner.isEmpty else { return }
            switch answer {
            case .success(let owner): ownerHasChanged(entry, to: owner)
            case .failure(let fault) where !facts.isActivated || fault.saysNobodyKnows:
                entry.client.serviceIsAway("\(facts.title) is not running")
            case .failure(let fault):
                entry.client.serviceIsAway("\(facts.title) can't be started: \(fault.message)")
                startLater(entry)
            }
        }
    }

    private func ownerHasChanged(_ entry: Entry, to owner: String) {
        guard owner != entry.owner else { return }
        entry.loseOwner()
        entry.owner = owner
        guard !owner.isEmpty else {
            entry.client.serviceIsAway("\(entry.facts.title) went away")
            guard entry.facts.isActivated else { return }
            // One that lived for long is started again at once.
            if entry.since + Retry.longest <= .now { entry.retry.reset() }
            return startLater(entry)
        }
        entry.retry.cancel()
        present(entry, owner)
    }

    private func present(_ entry: Entry, _ owner: String) {
        entry.leave()
        (entry.since, entry.comesAgain) = (.now, false)
        let service = Service(
            owner: owner,
            on: link,
            presentLater: { [weak self, weak entry] service in
                if let entry { self?.presentLater(entry, service) }
            },
            isSilent: { [weak self, weak entry] service, question in
                if let entry { self?.isSilent(entry, service, question) }
            }
        )
        entry.current = service
        entry.client.serviceHasCome(service)
    }

    private func presentLater(_ entry: Entry, _ service: Service) {
        guard entry.current === service, !entry.comesAgain else { return }
        entry.comesAgain = true
        // One that has answered for long is asked again at once.
        if entry.since + Retry.longest <= .now { entry.retry.reset() }
        entry.retry.schedule { [weak self, weak entry] in
            if let entry, entry.current === service { self?.present(entry, service.owner) }
        }
    }

    /// It has not answered; it is asked again at a pace that needs no growing pauses.
    private func isSilent(_ entry: Entry, _ service: Service, _ question: String) {
        guard entry.current === service else { return }
        entry.leave()
        entry.retry.reset()
        let limit = link.answerLimit ?? BusLink.usualAnswerLimit
        entry.retry.schedule(after: limit / 10) { [weak self, weak entry] in
            if let entry, entry.current == nil, entry.owner == service.owner { self?.present(entry, service.owner) }
        }
        entry.client.serviceIsSilent(
            "\(entry.facts.title) has not answered the question \(question) within \(limit.asSeconds)"
        )
    }

    private func startLater(_ entry: Entry) {
        entry.retry.schedule { [weak self, weak entry] in
            if let entry { self?.findOwner(entry) }
        }
    }

    // MARK: - Signals

    func handle(_ signal: BusSignal) {
        if let change = OwnerChange(signal) {
            for entry in entries where entry.facts.name == change.name {
                entry.round += 1
                ownerHasChanged(entry, to: change.owner)
            }
            return
        }
        // Anyone can send a signal to one connection, whatever its match rules.
        for entry in entries where entry.current?.owner == signal.sender { entry.client.handle(signal) }
    }
}

extension BusFault {
    /// Whether the service may answer later: it did not say that it knows no such thing.
    var isPassing: Bool {
        let unknown = [
            "UnknownMethod", "UnknownObject", "UnknownInterface", "UnknownProperty", "NotSupported", "NotFound",
        ]
        return !unknown.contains { name.hasSuffix("." + $0) }
    }

    /// Whether the bus has no such service, nor a way to start it.
    fileprivate var saysNobodyKnows: Bool {
        name == "org.freedesktop.DBus.Error.ServiceUnknown" || name == "org.freedesktop.DBus.Error.NameHasNoOwner"
    }
}
