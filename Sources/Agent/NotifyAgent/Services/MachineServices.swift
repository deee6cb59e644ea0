// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// Services of the machine, on one connection to the system bus: it is opened for the first who follows one, and closed
/// after the last.
final class MachineServices: ServiceBus {
    private let bus: NotifyCenter.Bus
    private let answerLimit: Int64
    private let loop: EventLoop
    private var clients: [any ServiceClient] = []
    private var connection: MachineConnection?
    /// Tries again to reach a bus that accepts no connections.
    private let retry: Retry

    init(on loop: EventLoop, bus: NotifyCenter.Bus = .system, answerLimit: Int64 = BusLink.usualAnswerLimit) {
        (self.loop, self.bus, self.answerLimit) = (loop, bus, answerLimit)
        retry = Retry(on: loop)
    }

    /// The client may be told before this returns.
    func add(_ client: any ServiceClient) {
        clients.append(client)
        if let connection { connection.router.add(client) } else { connect() }
    }

    private func connect() {
        // libdbus would wait, and the agent with it.
        if bus.isCongested {
            for client in clients { client.serviceIsAway("the system bus accepts no connections") }
            return retry.schedule { [weak self] in self?.connect() }
        }
        retry.reset()
        let connection = MachineConnection(BusLink(bus: bus, answerLimit: answerLimit), on: loop) { [weak self] in
            self?.retire($0)
        }
        self.connection = connection
        for client in clients { connection.router.add(client) }
        loop.add(connection.link)
        connection.link.open()
    }

    func remove(_ client: any ServiceClient) {
        clients.removeAll { $0 === client }
        if clients.isEmpty { retry.cancel() }
        guard let connection else { return }
        connection.router.remove(client)
        if clients.isEmpty { retire(connection) }
    }

    /// Closes this connection; another one may have taken its place.
    private func retire(_ old: MachineConnection) {
        if connection === old { connection = nil }
        loop.remove(old.link)
        // It may be in the middle of something.
        loop.soon { old.link.end() }
    }
}

/// The connection to the system bus.
private final class MachineConnection: BusPeer {
    let link: BusLink
    let router: ServiceRouter
    private var hasBeenReady = false
    /// Called if the bus can't be reached.
    private let giveUp: (MachineConnection) -> Void

    init(_ link: BusLink, on loop: EventLoop, giveUp: @escaping (MachineConnection) -> Void) {
        (self.link, self.giveUp) = (link, giveUp)
        router = ServiceRouter(link, on: loop)
        link.peer = self
    }

    /// A machine that has no system bus gets none later; one that had will have it again.
    var keepsConnection: Bool { hasBeenReady }

    /// logind's locks are descriptors.
    var takesDescriptors: Bool { true }

    func linkIsReady(_ link: BusLink) {
        hasBeenReady = true
        router.linkIsReady()
    }

    func linkIsLost(_ error: NotifyBusError) {
        router.linkIsLost(hasBeenReady ? "the system bus went away" : error.description)
        // A bus that was never there is not waited for.
        if !hasBeenReady { giveUp(self) }
    }

    func handle(_ call: BusCall) -> Bool { false }

    func handle(_ signal: BusSignal) {
        signal.arguments.closeDescriptors()
        router.handle(signal)
    }
}
