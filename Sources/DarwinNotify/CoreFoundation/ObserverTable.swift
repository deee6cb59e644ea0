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
        var retry = RetryState()
        /// Whether it was said that what is posted can't be heard in this sandbox.
        var hasToldObstacle = false
    }

    let state = Monitor(State())
    /// Where observations that nobody wants are cancelled, which waits for a callback that runs.
    private let disposal = DispatchQueue(label: "org.notifybus.darwin.disposal")

    /// Enters a registration, and waits until the bus has confirmed it.
    ///
    /// - Returns: why it could not be made, and then it is made later unless the name is at fault; or, once, that it hears
    ///   less than it should.
    func add(_ registration: CFRegistration, for text: CFString) -> CFNotificationError.Cause? {
        let name: NotifyName
        do throws(NotifyBusError) {
            name = try NotifyName(text)
        } catch {
            return .refused(CFNotificationName(text), error)
        }
        let (observed, isMine) = state.withLock { state in
            let observed = state.names[name] ?? ObservedName(name)
            state.names[name] = observed
            observed.registrations.append(registration)
            if registration.observer != 0 { state.byObserver[registration.observer, default: []].insert(name) }
            return (observed, observed.beginOpening())
        }
        let error: NotifyBusError?
        if isMine {
            error = open(observed)
            // There is a bus now, or there is none: those that could not be observed before have their chance, or wait.
            retry(error == nil ? .atOnce : .later)
        } else {
            // Open, as a rule. If someone else is about it, the bus answers them within a limit.
            error = state.wait(until: nil) { _ in observed.outcome }?.failure
        }
        if let error { return .delayed(CFNotificationName(text), error) }
        return obstacle(to: name).map { .limited(CFNotificationName(text), reason: $0) }
    }

    /// Why the name can't be heard; told once in a process.
    private func obstacle(to name: NotifyName) -> String? {
        guard let reason = DarwinCenter.shared.obstacle(toHearing: name) else { return nil }
        return state.withLock { state in
            defer { state.hasToldObstacle = true }
            return state.hasToldObstacle ? nil : reason
        }
    }

    /// Observes a name on the bus. Called by the one that `beginOpening` has told to.
    ///
    /// - Returns: why that failed.
    func open(_ observed: ObservedName) -> NotifyBusError? {
        let result: Result<NotifyCenter.Observation, NotifyBusError>
        do throws(NotifyBusError) {
            let observation = try DarwinCenter.shared.addObserver(forName: observed.name, queue: .main) { [self] _ in
                deliver(observed)
            }
            result = .success(observation)
        } catch {
            result = .failure(error)
        }
        let superfluous = state.withLock { _ in observed.endOpening(result) }
        state.wakeAll()
        if let superfluous { dispose(superfluous) }
        return result.failure
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

extension Result {
    fileprivate var failure: Failure? {
        if case .failure(let error) = self { error } else { nil }
    }
}
