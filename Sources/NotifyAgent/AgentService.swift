// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
package import NotifyCore
import NotifyEvents
import NotifyNames

/// A running agent: its connection, and the thread that watches processes for it.
package final class AgentService: Sendable {
    /// The names of all sources of facts, as Status lists them.
    package static let sourceNames = ["logind", "gnome", "x11", "sway", SourceSet.shell, Coordinator.freezerSource]
    /// What `ignore` accepts in addition.
    package static let eventSourceNames = SystemEvent.Source.allCases.map(\.rawValue).filter {
        !sourceNames.contains($0)
    }

    /// The sources that this agent can use, and the environment in which it was started.
    private static func makers(
        for bus: NotifyCenter.Bus,
        _ configuration: Agent.Configuration,
        _ watcher: Watcher,
        _ services: MachineServices
    ) -> [SourceMaker] {
        let environment = SystemFile.environment("DISPLAY", "WAYLAND_DISPLAY", "XDG_SESSION_TYPE", "SWAYSOCK")
        // The system bus's agent serves everyone; desktops do not concern it.
        let servesMachine = bus == .system
        let elsewhere = servesMachine ? "an agent on the system bus has no desktop" : nil
        let user = servesMachine ? nil : geteuid()
        let all = [
            SourceMaker("logind") { (LogindSource($0, user: user, on: services)) },
            SourceMaker("gnome", elsewhere ?? GnomeSource.obstacle) { (GnomeSource($0, watcher)) },
            SourceMaker("x11", elsewhere ?? X11Source.obstacle(environment)) {
                (ThreadedSource("x11", $0) { X11Source(display: environment["DISPLAY"] ?? "", $0) })
            },
            SourceMaker("sway", elsewhere ?? SwaySource.obstacle(environment)) {
                (ThreadedSource("sway", $0) { SwaySource(path: environment["SWAYSOCK"] ?? "", $0) })
            },
        ]
        return all.filter { !configuration.facts.ignoredSources.contains($0.name) }
    }

    private let watcher: Watcher
    private let thread: EngineThread
    private let center: NotifyCenter
    private let agent: Agent

    /// Connects, and starts to serve once the bus has granted the name.
    ///
    /// - Parameter report: called on threads of the agent.
    package init(
        bus: NotifyCenter.Bus,
        configuration: Agent.Configuration,
        logger: Logger,
        report: @escaping @Sendable (Agent.Report) -> Void
    ) throws(NotifyBusError) {
        Memory.keepLittle()
        watcher = try Watcher()
        let (watcher, look) = (watcher, DeferredCall<Void>())
        let board = FactBoard { moment in
            if let moment { watcher.pause(until: moment) } else { look(()) }
        }
        let hear = DeferredCall<(source: String, news: EventNews)>()
        let agentThread = DeferredCall<AgentWork>()
        let folders = LaunchFolders(servesMachine: bus == .system)
        let launchWatch = LaunchWatch(watcher, folders)
        let (services, session) = (MachineServices(), SessionServices())
        let agent = Agent(
            configuration,
            bus: bus,
            logger: logger,
            watcher: watcher,
            sources: SourceSet(
                AgentService.makers(for: bus, configuration, watcher, services),
                ignoring: configuration.facts.ignoredSources,
                board: board,
                isOnDesktop: bus != .system
            ),
            events: EventPart(
                EventMakers(configuration, servesMachine: bus == .system),
                machine: services,
                session: session,
                hear
            ),
            session: session,
            launches: (folders, launchWatch),
            thread: agentThread,
            report: report
        )
        self.agent = agent
        let center = NotifyCenter(bus: bus, peer: agent)
        self.center = center
        // Weakly: the agent refers to what calls these.
        agentThread.set { [weak center, weak agent] work in
            guard let agent else { return }
            center?.perform { link in work(agent, link) }
        }
        look.set { [weak center, weak agent] _ in
            guard let agent else { return }
            center?.perform { link in agent.takeNews(on: link) }
        }
        hear.set { [weak center, weak agent] source, news in
            guard let agent else { return }
            center?.perform { link in agent.handle(EventTable.Input.said(source, news), on: link) }
        }
        session.perform.set { [weak center] work in center?.perform(work) }
        launchWatch.set { [weak center, weak agent] in
            guard let agent else { return }
            center?.perform { link in agent.loadLaunches(on: link) }
        }
        thread = try watcher.start { [weak center, weak agent] event in
            guard let agent else { return }
            center?.perform { link in agent.handle(event, on: link) }
        }
        try center.open()
    }

    /// Rereads the files of `launch.d`.
    package func reload() {
        center.perform { [agent] link in agent.loadLaunches(on: link) }
    }

    /// Thaws everything that the agent has frozen, releases the name and closes everything.
    package func stop() {
        center.perform { [agent] link in agent.end(on: link) }
        // If the bus is gone, this has been done anyway.
        try? center.barrier(timeout: .seconds(2))
        watcher.stop()
        thread.finish()
        center.close()
    }
}
