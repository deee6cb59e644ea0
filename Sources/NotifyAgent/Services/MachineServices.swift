// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// Services of the machine, on one connection to the system bus: it is opened for the first who follows one, and closed
/// after the last.
final class MachineServices: Sendable {
    private struct State {
        var clients: [any ServiceClient] = []
        var center: NotifyCenter?
        var connection: MachineConnection?
    }

    private let bus: NotifyCenter.Bus
    private let state = Monitor(State())

    init(bus: NotifyCenter.Bus = .system) { self.bus = bus }

    /// The client may be told on another thread before this returns.
    func add(_ client: any ServiceClient) {
        let (center, connection, clients, isNew) = state.withLock { state in
            state.clients.append(client)
            if let center = state.center, let connection = state.connection {
                return (center, connection, [client], false)
            }
            let connection = MachineConnection { [weak self] connection in self?.retire(connection) }
            let center = NotifyCenter(bus: bus, peer: connection)
            (state.center, state.connection) = (center, connection)
            return (center, connection, state.clients, true)
        }
        if isNew {
            do throws(NotifyBusError) {
                try center.open()
            } catch {
                for client in clients { client.serviceIsAway(error.description) }
                return retire(connection)
            }
        }
        center.perform { link in for client in clients { connection.router.add(client, on: link) } }
    }

    func remove(_ client: any ServiceClient) {
        let (center, connection, isLast) = state.withLock { state in
            state.clients.removeAll { $0 === client }
            return (state.center, state.connection, state.clients.isEmpty)
        }
        guard let center, let connection else { return }
        center.perform { link in connection.router.remove(client, on: link) }
        if isLast { retire(connection) }
    }

    /// Does something on the thread that reads the bus, if there is a connection.
    func perform(_ body: @escaping @Sendable (borrowing BusLink) -> Void) {
        state.withLock { $0.center }?.perform(body)
    }

    /// Closes this connection; another one may have taken its place.
    private func retire(_ connection: MachineConnection) {
        let center: NotifyCenter? = state.withLock { state in
            guard state.connection === connection else { return nil }
            defer { (state.center, state.connection) = (nil, nil) }
            return state.center
        }
        guard let center else { return }
        // It waits for the center's thread, and that may be waiting for the bus.
        (try? EngineThread(name: "services") { center.close() })?.detach()
    }
}

/// The connection to the system bus.
///
/// `@unchecked Sendable`: the variables are touched only by the thread that reads it.
private final class MachineConnection: BusPeer, @unchecked Sendable {
    let router = ServiceRouter()
    private var hasBeenReady = false
    /// Is called when the bus was not to be had.
    private let giveUp: @Sendable (MachineConnection) -> Void

    init(giveUp: @escaping @Sendable (MachineConnection) -> Void) { self.giveUp = giveUp }

    /// A machine that has no system bus gets none later; one that had will have it again.
    var keepsConnection: Bool { hasBeenReady }

    /// logind's locks are descriptors.
    var takesDescriptors: Bool { true }

    var deadline: MonotonicTime? { router.deadline }

    func deadlineHasPassed(_ link: borrowing BusLink) { router.deadlineHasPassed(link) }

    func linkIsReady(_ link: borrowing BusLink) {
        hasBeenReady = true
        router.linkIsReady(link)
    }

    func linkIsLost(_ error: NotifyBusError) {
        router.linkIsLost(hasBeenReady ? "the system bus went away" : error.description)
        // No thread waits for one.
        if !hasBeenReady { giveUp(self) }
    }

    func handle(_ call: BusCall, on link: borrowing BusLink) -> Bool { false }

    func handle(_ signal: BusSignal, on link: borrowing BusLink) {
        signal.arguments.closeDescriptors()
        router.handle(signal, on: link)
    }
}
