// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// Where services are followed.
protocol ServiceBus: Sendable {
    func add(_ client: any ServiceClient)
    func remove(_ client: any ServiceClient)
}

extension MachineServices: ServiceBus {}

/// Services on the agent's own bus, on the agent's own connection.
final class SessionServices: ServiceBus {
    let router = ServiceRouter()
    /// Does something on the thread that reads the bus.
    let perform = DeferredCall<@Sendable (borrowing BusLink) -> Void>()

    func add(_ client: any ServiceClient) { perform { [router] link in router.add(client, on: link) } }
    func remove(_ client: any ServiceClient) { perform { [router] link in router.remove(client, on: link) } }
}
