// SPDX-License-Identifier: Apache-2.0

/// An observer and what it stands under.
struct Registration: Sendable {
    let observer: Observer
    /// Heard over the bus.
    var busTopics: [Topic] = []
    /// Heard inside the process.
    var processTopics: [Topic] = []
}

extension Engine {
    /// How long the bus may take to confirm a registration.
    private static let registrationLimit = Duration.seconds(25)

    /// Enters an observer, and waits until it hears every later post.
    ///
    /// - Parameter limit: how long to wait at the most, if that is less than the bus may take.
    func register(
        _ observer: Observer,
        _ keys: [Topic.Key],
        within limit: Duration? = nil
    ) throws(NotifyBusError) -> Registration {
        try start()
        var busKeys: [Topic.Key] = []
        var processKeys: [Topic.Key] = []
        for key in keys {
            switch key {
            case .name(let name) where name.storage.scope == .process:
                processKeys.append(key)
            case .name:
                busKeys.append(key)
            case .prefix(let prefix):
                if ProcessHub.canMatch(prefix: prefix) { processKeys.append(key) }
                if !ProcessHub.containsAll(ofPrefix: prefix) { busKeys.append(key) }
            }
        }
        var registration = Registration(observer: observer)
        observers.withLock { $0[ObjectIdentifier(observer)] = observer }
        registration.busTopics = registry.add(observer, to: busKeys)
        if !busKeys.isEmpty {
            wake()
            prepareToWait()
            let deadline = MonotonicTime.after(min(limit ?? Engine.registrationLimit, Engine.registrationLimit))
            if let error = registry.waitUntilActive(registration.busTopics, deadline: deadline) {
                cancel(registration)
                throw error
            }
        }
        registration.processTopics = ProcessHub.add(observer, to: processKeys)
        return registration
    }

    /// Ends a registration: when this returns, the callback does not run and never will.
    ///
    /// - Parameter waits: whether to wait for a callback that is running in another thread.
    func cancel(_ registration: Registration, waits: Bool = true) {
        let observer = registration.observer
        observer.cancel(waits: waits)
        guard observers.withLock({ $0.removeValue(forKey: ObjectIdentifier(observer)) }) != nil else { return }
        if !registration.processTopics.isEmpty { ProcessHub.remove(observer, from: registration.processTopics) }
        if registry.remove(observer, from: registration.busTopics) { wake() }
    }

    /// Cancels every observer, and ends the threads.
    func close() {
        let all = observers.withLock { Array($0.values) }
        for observer in all { observer.cancel() }
        stop()
    }

    /// Leaves something for the thread that reads.
    func command(_ command: Registry.Command) {
        registry.state.withLock { $0.commands.append(command) }
        wake()
    }

    func barrier(until deadline: MonotonicTime?) throws(NotifyBusError) {
        let barrier = Barrier()
        command(.barrier(barrier))
        try barrier.wait(until: deadline)
    }
}
