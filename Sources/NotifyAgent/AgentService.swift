// SPDX-License-Identifier: Apache-2.0

package import Logging
package import NotifyCore

/// An agent at work: its connection, and the thread that watches processes for it.
package final class AgentService: Sendable {
    package enum StartError: Error {
        case noDescriptors(Int32)
        case bus(NotifyBusError)
    }

    private let watcher: Watcher
    private let thread: EngineThread
    private let center: NotifyCenter
    private let agent: Agent

    /// Connects, and begins to serve when the bus has given it the name.
    ///
    /// - Parameter report: called on threads of the agent.
    package init(
        bus: NotifyCenter.Bus,
        configuration: Agent.Configuration,
        logger: Logger,
        report: @escaping @Sendable (Agent.Event) -> Void
    ) throws(StartError) {
        do throws(WatcherError) {
            watcher = try Watcher()
        } catch {
            throw .noDescriptors(error.code)
        }
        let agent = Agent(configuration, bus: bus, logger: logger, watcher: watcher, report: report)
        self.agent = agent
        let center = NotifyCenter(bus: bus, peer: agent)
        self.center = center
        do throws(NotifyBusError) {
            thread = try watcher.start { [weak center] event in
                center?.perform { link in agent.handle(event, on: link) }
            }
            try center.open()
        } catch {
            throw .bus(error)
        }
    }

    /// Lets everything go on that the agent has frozen, gives the name back and closes everything.
    package func stop() {
        center.perform { [agent] _ in agent.thawEverything() }
        // If the bus is gone it has been done all the same.
        try? center.barrier(timeout: .seconds(2))
        watcher.stop()
        thread.finish()
        center.close()
    }
}
