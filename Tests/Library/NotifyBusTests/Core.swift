// SPDX-License-Identifier: Apache-2.0

import NotifyBus
import NotifyCore
import TestSupport

// What the tests of the public center need of the core.

extension NotifyBus.NotifyCenter {
    /// A center that reports how its observing connection is lost and restored, in order with its callbacks.
    convenience init(
        bus: Bus,
        waitsForBus: Bool = false,
        onConnectionChange: (@Sendable (ConnectionChange) -> Void)?
    ) {
        let report = onConnectionChange.map { report in
            { @Sendable (change: CoreCenter.ConnectionChange) in report(ConnectionChange(change)) }
        }
        self.init(CoreCenter(bus: bus.core, waitsForBus: waitsForBus, onConnectionChange: report))
    }

    /// Posts as a command does: opens the connection in this thread.
    func postOnceConnected(_ name: NotifyBus.NotifyName) throws(NotifyBus.NotifyBusError) {
        do throws(CoreError) {
            try core.postOnceConnected(name.core)
        } catch {
            throw NotifyBus.NotifyBusError(error)
        }
    }

    /// Waits until everything that the bus has routed so far has been called back.
    func barrier(timeout: Duration? = nil) throws(NotifyBus.NotifyBusError) {
        do throws(CoreError) {
            try core.barrier(timeout: timeout)
        } catch {
            throw NotifyBus.NotifyBusError(error)
        }
    }

    /// Observes without waiting, as commands do.
    func startObserving(
        _ subject: NotifyBus.NotifySubject,
        waitsForBus: Bool,
        using callback: @escaping @Sendable (NotifyBus.NotifyName) -> Void,
        whenLive: @escaping @Sendable (Result<Void, NotifyBus.NotifyBusError>) -> Void
    ) throws(NotifyBus.NotifyBusError) -> Observation {
        do throws(CoreError) {
            let observation = try core.startObserving(
                subject.core,
                waitsForBus: waitsForBus,
                using: { callback(NotifyBus.NotifyName($0)) },
                whenLive: { result in whenLive(result.mapError { NotifyBus.NotifyBusError($0) }) }
            )
            return Observation(observation)
        } catch {
            throw NotifyBus.NotifyBusError(error)
        }
    }
}

extension NotifyBus.NotifyName {
    var string: String { rawValue }
}

extension PrivateBus {
    /// A new center on this bus, of which a test sees everything.
    func makeCoreCenter() -> CoreCenter { CoreCenter(bus: .address(address)) }
}
