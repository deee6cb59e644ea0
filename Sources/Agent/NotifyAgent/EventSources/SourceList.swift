// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore
import NotifyNames

/// What the sources of an agent find around them.
struct SourceEnvironment {
    let link: BusLink
    /// Services on the agent's bus, and on the machine's.
    let session: any ServiceBus
    let machine: any ServiceBus
    /// Whether the agent serves everyone; desktops do not concern it.
    let servesMachine: Bool
    /// Whether a rule needs to know which windows are fullscreen.
    let seesFullscreen: Bool
    var variables = SystemFile.environment(
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "XDG_SESSION_TYPE",
        "XDG_CURRENT_DESKTOP",
        "XDG_RUNTIME_DIR",
        "SWAYSOCK",
        "NIRI_SOCKET",
        "HYPRLAND_INSTANCE_SIGNATURE",
        "PULSE_SERVER"
    )

    /// Whose sessions count; nil means everyone's.
    var user: UInt32? { servesMachine ? nil : geteuid() }

    /// Where the sound server listens; nil if that is on another machine, or nowhere.
    var soundSocket: String? {
        guard let server = variables["PULSE_SERVER"] else {
            return variables["XDG_RUNTIME_DIR"].map { $0 + "/pulse/native" }
        }
        let path = server.utf8.starts(with: "unix:".utf8) ? String(server.dropFirst(5)) : server
        return path.utf8.first == UInt8(ascii: "/") ? path : nil
    }

    /// Why no desktop is to be looked for.
    var absence: String? { servesMachine ? "an agent on the system bus has no desktop" : nil }
}

/// A source of what decides about programs, by the name under which it is listed and configured.
struct DecidingSource: Sendable {
    let name: String
    /// Why it can't work at all; nil if it may.
    let obstacle: @Sendable (SourceEnvironment) -> String?
    let make: @Sendable (SourceEnvironment) -> any Source

    init(
        _ name: String,
        unless obstacle: @escaping @Sendable (SourceEnvironment) -> String? = { _ in nil },
        _ make: @escaping @Sendable (SourceEnvironment) -> any Source
    ) {
        (self.name, self.obstacle, self.make) = (name, obstacle, make)
    }

    /// Those that say which program has the focus.
    static let ofFocus = ["gnome", "x11", "sway", "niri", "hyprland", ShellSource.name]

    /// In order of precedence. A source that may block is on a thread of its own.
    static let all = [
        DecidingSource("logind") { LogindSource(user: $0.user, on: $0.machine) },
        DecidingSource("gnome", unless: { $0.absence ?? GnomeSource.obstacle }) { environment in
            GnomeSource(units: GnomeSource.units(environment.variables))
        },
        DecidingSource("x11", unless: { $0.absence ?? X11Source.obstacle($0.variables) }) { environment in
            let display = environment.variables["DISPLAY"] ?? ""
            let seesFullscreen = environment.seesFullscreen
            return X11Source.onThread(display: display, seesFullscreen: seesFullscreen)
        },
        DecidingSource("sway", unless: { $0.absence ?? SwaySource.obstacle($0.variables) }) { environment in
            SwaySource(path: environment.variables["SWAYSOCK"] ?? "")
        },
        DecidingSource("niri", unless: { $0.absence ?? NiriSource.obstacle($0.variables) }) { environment in
            NiriSource(path: environment.variables["NIRI_SOCKET"] ?? "")
        },
        DecidingSource("hyprland", unless: { $0.absence ?? HyprlandSource.obstacle($0.variables) }) { environment in
            HyprlandSource(folder: HyprlandSource.folder(environment.variables) ?? "")
        },
        DecidingSource(LomiriSource.name, unless: { $0.absence ?? LomiriSource.obstacle($0.variables) }) {
            LomiriSource($0.link)
        },
        DecidingSource(ShellSource.name) { ShellSource($0.link, $0.session, asks: !$0.servesMachine) },
    ]
}

/// Where the names of a group of events come from.
enum EventOrigin {
    case source((SourceEnvironment) -> any Source)
    /// They follow from what these report.
    case derived([String])

    init(_ source: SystemEvent.Source) {
        self =
            switch source {
            case .timezone: .source { _ in FileSource(FileSource.Rule.timeZone) }
            case .clock: .source { _ in ClockSource() }
            case .hostname: .source { _ in HostNameSource() }
            case .mounts: .source { _ in MountSource() }
            case .network: .source { _ in NetworkSource() }
            case .dns: .source { _ in FileSource(FileSource.Rule.dns) }
            case .memory: .source { _ in MemorySource() }
            case .accounts: .source { _ in FileSource(FileSource.Rule.accounts) }
            case .locale: .source { _ in FileSource(FileSource.Rule.locale) }
            case .power: .source { PowerSource(on: $0.machine) }
            case .profile: .source { ProfileSource(on: $0.machine) }
            case .appearance: .source { AppearanceSource(on: $0.session) }
            case .packages: .source { _ in PackageSource() }
            case .sleep, .users, .locker, .logind: .derived(["logind"])
            case .focus: .derived(DecidingSource.ofFocus)
            }
    }
}

/// The sources of an agent with this configuration, and the names that they serve.
struct SourceList {
    /// The source for files named in the configuration.
    private static let configuredFiles = "file"

    private(set) var makers: [String: SourceMaker] = [:]
    /// Those that decide about programs, in order of precedence.
    private(set) var deciding: [String] = []
    /// By name, the sources or groups that serve it.
    private(set) var names: [NotifyName: [String]] = [:]
    private(set) var aliases: [NotifyName: [SystemEvent]] = [:]
    /// The groups of names that follow from facts, and from whose.
    private(set) var derived: [String: [String]] = [:]

    init(_ configuration: Agent.Configuration, in environment: SourceEnvironment) {
        let ignored = configuration.facts.ignoredSources
        for source in DecidingSource.all where !ignored.contains(source.name) {
            deciding.append(source.name)
            makers[source.name] = SourceMaker(reportsFacts: true, unless: source.obstacle(environment)) {
                source.make(environment)
            }
        }
        makers[ScreenSaverSource.name] = SourceMaker(reportsFacts: true) {
            ScreenSaverSource(on: environment.session)
        }
        if configuration.postsEvents {
            for event in SystemEvent.all {
                guard let source = event.source, !(environment.servesMachine && source.isOfSession),
                    !ignored.contains(source.rawValue)
                else { continue }
                names[event.name] = [source.rawValue]
                if let original = event.original { aliases[original, default: []].append(event) }
                switch EventOrigin(source) {
                case .source(let make): makers[source.rawValue] = SourceMaker { make(environment) }
                case .derived(let origins): derived[source.rawValue] = origins
                }
            }
        }
        addFiles(configuration.files)
    }

    private mutating func addFiles(_ files: [(name: NotifyName, path: String)]) {
        guard !files.isEmpty else { return }
        let rules = files.map { FileSource.Rule([$0.path], [$0.name]) }
        for file in files where names[file.name]?.contains(SourceList.configuredFiles) != true {
            names[file.name, default: []].append(SourceList.configuredFiles)
        }
        // It may hang, along with a file system that a user has chosen.
        makers[SourceList.configuredFiles] = SourceMaker {
            ThreadedSource(SourceList.configuredFiles) { FileSource(rules) }
        }
    }
}
