// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// The services that are followed on one connection: who owns their names, and whom their signals are for.
final class ServiceRouter {
    private final class Entry {
        let client: any ServiceClient
        var current: Service?
        /// When to have it started again.
        var retry = BackOff(first: 250, last: ServiceRouter.longestRetry)
        /// Since when it is there.
        var since = MonotonicTime(nanoseconds: 0)
        /// Counts the questions for its owner: the answer to an earlier one comes too late.
        var round = 0
        var isFollowed = false

        init(_ client: any ServiceClient) { self.client = client }

        var facts: FollowedService { client.service }

        var rules: [String] {
            [OwnerChange.rule(of: facts.name)] + facts.signals.map { "type='signal',sender='\(facts.name)',\($0)" }
        }

        func leave() {
            current?.leave()
            current = nil
        }
    }

    /// The longest time between two attempts to have a service started, in milliseconds. One that lived for that long is
    /// started again at once.
    private static let longestRetry: Int64 = 30_000

    private let link: BusLink
    private var entries: [Entry] = []
    private var isReady = false

    init(_ link: BusLink) { self.link = link }

    // MARK: - Who follows what

    /// Adds a client; it hears of the service as soon as the bus has said whether it is there.
    func add(_ client: any ServiceClient) {
        let entry = Entry(client)
        entries.append(entry)
        if isReady { follow(entry) }
    }

    /// After this the client is told nothing more.
    func remove(_ client: any ServiceClient) {
        for entry in entries where entry.client === client {
            entry.leave()
            entry.round += 1
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
            entry.leave()
            entry.round += 1
            entry.retry.reset()
            entry.isFollowed = false
            entry.client.serviceIsAway(reason)
        }
    }

    /// When `deadlineHasPassed` is to be called; nil means never.
    var deadline: MonotonicTime? {
        entries.reduce(nil) { MonotonicTime.earlier($0, $1.retry.time) }
    }

    func deadlineHasPassed() {
        for entry in entries {
            guard let time = entry.retry.time, time <= .now else { continue }
            entry.retry.cancel()
            findOwner(entry)
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
            guard round == entry.round, entry.current == nil else { return }
            switch answer {
            case .success(let owner): ownerHasChanged(entry, to: owner)
            case .failure(let fault) where !facts.isActivated || fault.saysNobodyKnows:
                entry.client.serviceIsAway("\(facts.title) is not running")
            case .failure(let fault):
                entry.client.serviceIsAway("\(facts.title) can't be started: \(fault.message)")
                entry.retry.schedule()
            }
        }
    }

    private func ownerHasChanged(_ entry: Entry, to owner: String) {
        guard owner != entry.current?.owner ?? "" else { return }
        entry.leave()
        guard !owner.isEmpty else {
            entry.client.serviceIsAway("\(entry.facts.title) went away")
            guard entry.facts.isActivated else { return }
            if entry.since + ServiceRouter.longestRetry <= .now { entry.retry.reset() }
            return entry.retry.schedule()
        }
        entry.retry.cancel()
        entry.since = .now
        let service = Service(owner: owner, on: link)
        entry.current = service
        entry.client.serviceHasCome(service)
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
    /// Whether the bus has no such service, nor a way to start it.
    fileprivate var saysNobodyKnows: Bool {
        name == "org.freedesktop.DBus.Error.ServiceUnknown" || name == "org.freedesktop.DBus.Error.NameHasNoOwner"
    }
}
