// SPDX-License-Identifier: Apache-2.0

import Dispatch
import NotifyBus

/// Who observes what through the Darwin notify center: one observation of the bus for each distinct name, shared by all
/// registrations of it.
final class ObserverTable: Sendable {
    struct State {
        var names: [NotifyName: ObservedName] = [:]
        /// Which names each observer has registered for.
        var byObserver: [UInt: Set<NotifyName>] = [:]
        /// Whether it was said that what is posted can't be heard in this sandbox.
        var hasToldObstacle = false
    }

    private let state = Monitor(State())
    /// Where observations that nobody wants are cancelled, which waits for a callback that runs.
    private let disposal = DispatchQueue(label: "org.notifybus.darwin.disposal")

    /// Enters a registration, and waits until the bus has confirmed it, or it is known that there is none.
    ///
    /// - Returns: why it could not be made, and then it is made later unless waiting can't mend that; or, once, that it
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
        // If someone else is about it, the bus answers them within a limit.
        let outcome: ObservedName.Link? = state.wait(until: nil) { _ in
            if case .opening = observed.link { nil } else { observed.link }
        }
        switch outcome {
        case .waiting(let error): return .delayed(CFNotificationName(text), error)
        case .failed(let error): return .refused(CFNotificationName(text), error)
        default: return obstacle(to: name).map { .limited(CFNotificationName(text), reason: $0) }
        }
    }

    /// Why the name can't be heard; told once in a process.
    private func obstacle(to name: NotifyName) -> String? {
        guard let reason = DarwinCenter.shared.obstacle(toHearing: name) else { return nil }
        return state.withLock { state in
            defer { state.hasToldObstacle = true }
            return state.hasToldObstacle ? nil : reason
        }
    }

    /// Observes a name on the bus, now or when there is one.
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

    /// The bus has confirmed a name that had to wait, or what waiting can't mend has come between.
    private func settle(_ observed: ObservedName, _ result: Result<Void, NotifyBusError>) {
        let superfluous: NotifyCenter.Observation? = state.withLock { state in
            let superfluous = observed.settle(result)
            guard case .failure = result, state.names[observed.name] === observed else { return superfluous }
            // The next to register for it begins again.
            state.names[observed.name] = nil
            for registration in observed.registrations.all {
                _ = state.takeNames(of: registration.observer, only: observed.name)
            }
            return superfluous
        }
        if let superfluous { dispose(superfluous) }
    }

    /// Removes an observer's registrations of one name, or of all.
    func remove(_ observer: UInt, from text: CFString?) {
        // What is not a name was never registered.
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
    /// Takes a name, or all, off those that an observer has registered for.
    ///
    /// - Returns: those that it had registered for.
    fileprivate mutating func takeNames(of observer: UInt, only name: NotifyName?) -> Set<NotifyName> {
        guard let name else { return byObserver.removeValue(forKey: observer) ?? [] }
        guard byObserver[observer]?.remove(name) != nil else { return [] }
        if byObserver[observer]?.isEmpty == true { byObserver[observer] = nil }
        return [name]
    }
}

/// A name that is observed, and its place on the bus.
///
/// `@unchecked Sendable`: the variables are touched only with the lock of the `ObserverTable` held that has it.
final class ObservedName: @unchecked Sendable {
    enum Link {
        /// The one who registered first is about it.
        case opening
        /// It waits for a bus, for this reason.
        case waiting(NotifyBusError)
        case live
        case failed(NotifyBusError)
        /// Nobody wants it any more.
        case closed
    }

    let name: NotifyName
    var registrations = CFRegistrationList()
    private(set) var link = Link.opening
    private var observation: NotifyCenter.Observation?

    init(_ name: NotifyName) {
        self.name = name
    }

    /// - Returns: the observation, if nobody wants it any more.
    fileprivate func begin(
        _ observation: NotifyCenter.Observation,
        _ delay: NotifyBusError?
    ) -> NotifyCenter.Observation? {
        // It may have been removed, or become live or failed, since.
        switch link {
        case .closed, .failed: return observation
        case .opening: link = delay.map { .waiting($0) } ?? .live
        case .waiting, .live: break
        }
        self.observation = observation
        return nil
    }

    /// - Returns: the observation, if it can't become live any more.
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

    /// - Returns: the observation that nobody wants any more.
    fileprivate func close() -> NotifyCenter.Observation? {
        defer { (link, observation) = (.closed, nil) }
        return observation
    }
}
