// SPDX-License-Identifier: Apache-2.0

/// Where services are followed.
protocol ServiceBus: AnyObject {
    func add(_ client: any ServiceClient)
    /// After this the client is told nothing more.
    func remove(_ client: any ServiceClient)
}

/// Services on the agent's own bus are followed on its own connection.
extension ServiceRouter: ServiceBus {}
