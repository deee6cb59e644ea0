// SPDX-License-Identifier: Apache-2.0

import Dispatch
import NotifyBus

/// The registrations with the Darwin notify center: each distinct name has one observation on the bus, shared by all
/// its registrations.
final class ObserverTable: Sendable {
    struct State {
        var names: [NotifyName: ObservedName] = [:]
        /// The names for which each observer has registered.
        var byObserver: [UInt: Set<NotifyName>] = [:]
        /// Whether it has been reported that posts can't be heard in this sandbox.
        var hasToldObstacle = false
    }

    private let state = Monitor(State())
    /// Where observations that are no longer needed are cancelled, which waits for a running callback.
    private let disposal = DispatchQueue(label: "org.notifybus.darwin.disposal")

    /// Adds a registration, and waits until the bus has confirmed it or is known to be missing.
    ///
    /// - Returns: why it failed, in which case it is retried later unless waiting can't fix that; or, once, that it
    ///   hears less than it should.
    func add(_ registration: CFRegistration, for text: CFString) -> CFNotificationError.Cause? {
        let name: NotifyName
        do throws(NotifyBusError) {
            name = try NotifyName(text)
        } catch {
            return .refused(CFNotificationName(text), error)
        }
        let (observed, isFirst) = state.withLock { state in
            let known = state.names[name]
            let observed = known ?? ObservedName(name)
            state.names[name] = observed
            observed.registrations.append(registration)
            if registration.observer != 0 { state.byObserver[registration.observer, default: []].insert(name) }
            return (observed, known == nil)
        }
        if isFirst { open(observed) }
        // If another thread is registering it, the bus answers that thread within a limit.
        let outcome: ObservedName.Link? = state.wait(until: nil) { _ in
            if case .opening = observed.link { nil } else { observed.link }
        }
        switch outcome {
        case .waiting(let error): return .delayed(CFNotificationName(text), error)
        case .failed(let error): return .refused(CFNotificationName(text), error)
        default: return obstacle(to: name).map { .limited(CFNotificationName(text), reason: $0) }
        }
    }

    /// Why the name can't be heard; reported once per process.
    private func obstacle(to name: NotifyName) -> String? {
        guard let reason = DarwinCenter.shared.obstacle(toHearing: name) else { return nil }
        return state.withLock { state in
            defer { state.hasToldObstacle = true }
            return state.hasToldObstacle ? nil : reason
        }
    }

    /// Observes a name on the bus, now or once there is one.
    private func open(_ observed: ObservedName) {
        var superfluous: NotifyCenter.Observation?
        do throws(NotifyBusError) {
            let (observation, delay) = try DarwinCenter.shared.addObserverWaitingForBus(
                forName: observed.name,
                queue: .main,
                using: { [self] _ in deliver(observed) },
                whenLive: { [self] result in
                    settle(observed, result)
                    guard case .failure(let error) = result else { return }
                    let name = CFNotificationName(observed.name.string)
                    Reporter.report(.refused(name, error), by: "CFNotificationCenterAddObserver")
                }
            )
            superfluous = state.withLock { _ in observed.begin(observation, delay) }
        } catch {
            settle(observed, .failure(error))
        }
        state.wakeAll()
        if let superfluous { dispose(superfluous) }
    }

    /// The bus has confirmed a pending name, or it has failed with an error that waiting can't fix.
    private func settle(_ observed: ObservedName, _ result: Result<Void, NotifyBusError>) {
        let superfluous: NotifyCenter.Observation? = state.withLock { state in
            let superfluous = observed.settle(result)
            guard case .failure = result, state.names[observed.name] === observed else { return superfluous }
            // The next registration of it starts over.
            state.names[observed.name] = nil
            for registration in observed.registrations.all {
                _ = state.takeNames(of: registration.observer, only: observed.name)
            }
            return superfluous
        }
        if let superfluous { dispose(superfluous) }
    }

    /// Removes an observer's registrations for one name, or for all.
    func remove(_ observer: UInt, from text: CFString?) {
        // An invalid name was never registered.
        let only: NotifyName? = text.flatMap { try? NotifyName($0) }
        if text != nil, only == nil { return }
        let superfluous: [NotifyCenter.Observation] = state.withLock { state in
            let names = state.takeNames(of: observer, only: only)
            return names.compactMap { name in
                guard let observed = state.names[name] else { return nil }
                observed.registrations.remove(observer)
                guard observed.registrations.isEmpty else { return nil }
                state.names[name] = nil
                return observed.close()
            }
        }
        for observation in superfluous { dispose(observation) }
    }

    private func deliver(_ observed: ObservedName) {
        let registrations = state.withLock { _ in observed.registrations.all }
        let name = CFNotificationName(observed.name.string)
        // The main queue is the main actor, whatever thread it runs on.
        MainActor.assumeIsolated {
            for registration in registrations { registration.deliver(name) }
        }
    }

    private func dispose(_ observation: NotifyCenter.Observation) {
        disposal.async { observation.cancel() }
    }
}

extension ObserverTable.State {
    /// Removes a name, or all, from those for which an observer has registered.
    ///
    /// - Returns: the names for which it had registered.
    fileprivate mutating func takeNames(of observer: UInt, only name: NotifyName?) -> Set<NotifyName> {
        guard let name else { return byObserver.removeValue(forKey: observer) ?? [] }
        guard byObserver[observer]?.remove(name) != nil else { return [] }
        if byObserver[observer]?.isEmpty == true { byObserver[observer] = nil }
        return [name]
    }
}

/// An observed name, and its status on the bus.
///
/// `@unchecked Sendable`: the variables are touched only with the lock of the owning `ObserverTable` held.
final class ObservedName: @unchecked Sendable {
    enum Link {
        /// The first thread to register it is registering it with the bus.
        case opening
        /// It is waiting for a bus, for this reason.
        case waiting(NotifyBusError)
        case live
        case failed(NotifyBusError)
        /// Nobody needs it any more.
        case closed
    }

    let name: NotifyName
    var registrations = CFRegistrationList()
    private(set) var link = Link.opening
    private var observation: NotifyCenter.Observation?

    init(_ name: NotifyName) {
        self.name = name
    }

    /// - Returns: the observation, if nobody needs it any more.
    fileprivate func begin(
        _ observation: NotifyCenter.Observation,
        _ delay: NotifyBusError?
    ) -> NotifyCenter.Observation? {
        // Meanwhile it may have been removed, become live, or failed.
        switch link {
        case .closed, .failed: return observation
        case .opening: link = delay.map { .waiting($0) } ?? .live
        case .waiting, .live: break
        }
        self.observation = observation
        return nil
    }

    /// - Returns: the observation, if it can no longer become live.
    fileprivate func settle(_ result: Result<Void, NotifyBusError>) -> NotifyCenter.Observation? {
        if case .closed = link { return nil }
        switch result {
        case .success:
            link = .live
            return nil
        case .failure(let error):
            defer { observation = nil }
            link = .failed(error)
            return observation
        }
    }

    /// - Returns: the observation that nobody needs any more.
    fileprivate func close() -> NotifyCenter.Observation? {
        defer { (link, observation) = (.closed, nil) }
        return observation
    }
}
