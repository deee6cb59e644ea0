// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore
import NotifyEvents
import NotifyNames

/// The sources of events that this agent can use, and the names that they serve.
struct EventMakers {
    /// The bus on which services are followed.
    enum Place {
        case machine, session
    }

    enum Kind {
        case loop((EventReporter) -> any EventSource)
        /// It may hang, along with a file system that a user has chosen, and so needs a thread of its own.
        case thread(@Sendable (EventReporter) -> any EventSource)
        /// It follows services.
        case services(Place, (EventReporter) -> [any ServiceClient])
        /// It follows from logind's facts.
        case facts
    }

    /// The source for files named in the configuration.
    static let configuredFiles = "file"

    private(set) var names: [NotifyName: [String]] = [:]
    private(set) var aliases: [NotifyName: [SystemEvent]] = [:]
    private var kinds: [String: Kind] = [:]

    init(_ configuration: Agent.Configuration, servesMachine: Bool) {
        if configuration.postsEvents {
            for event in SystemEvent.all {
                guard let source = event.source, !(servesMachine && source.isOfSession),
                    !configuration.facts.ignoredSources.contains(source.rawValue)
                else { continue }
                names[event.name] = [source.rawValue]
                if let original = event.original { aliases[original, default: []].append(event) }
                kinds[source.rawValue] = EventMakers.kind(of: source)
            }
        }
        let files = configuration.files
        guard !files.isEmpty else { return }
        for file in files where names[file.name]?.contains(EventMakers.configuredFiles) != true {
            names[file.name, default: []].append(EventMakers.configuredFiles)
        }
        let rules = files.map { FileSource.Rule([$0.path], [$0.name]) }
        kinds[EventMakers.configuredFiles] = .thread { FileSource($0, rules) }
    }

    private static func kind(of source: SystemEvent.Source) -> Kind {
        switch source {
        case .power: .services(.machine, PowerSource.make)
        case .profile: .services(.machine, ProfileSource.make)
        case .appearance: .services(.session) { [AppearanceSource($0)] }
        case .sleep, .users, .locker, .logind: .facts
        default: .loop { KernelSources.make(source, $0) }
        }
    }

    func kind(of source: String) -> Kind? { kinds[source] }
}
