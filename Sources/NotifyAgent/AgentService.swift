// SPDX-License-Identifier: Apache-2.0

package import Logging
package import NotifyBus

/// An agent at work: its connection, and the thread that watches processes for it.
package final class AgentService: Sendable {
    package enum StartError: Error {
        case noDescriptors(Int32)
        case bus(NotifyBusError)
    }

    /// The names of all sources of facts, as Status lists them.
    package static let sourceNames = ["logind", "gnome", "x11", "sway", Agent.shellSource, Agent.freezerSource]

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
        let (watcher, doorbell) = (watcher, Doorbell())
        let board = FactBoard { moment in
            if let moment { watcher.pause(until: moment) } else { doorbell.ring() }
        }
        let names = [Agent.shellSource, Agent.freezerSource].filter { !configuration.facts.ignoredSources.contains($0) }
        let agent = Agent(
            configuration,
            logger: logger,
            watcher: watcher,
            board: board,
            sources: SourceTable(names),
            report: report
        )
        self.agent = agent
        let center = NotifyCenter(bus: bus, peer: agent)
        self.center = center
        doorbell.connect { [weak center] in center?.perform { link in agent.takeNews(link) } }
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
