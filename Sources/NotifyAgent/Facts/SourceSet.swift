// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore
import NotifyEvents

/// The sources of facts that this agent can use. They work while there are observers: otherwise there is nothing to
/// decide.
final class SourceSet {
    /// The name under which a desktop's own report is listed.
    static let shell = "shell"

    /// The status of a source.
    typealias Change = (source: String, condition: SourceCondition?)

    private let link: BusLink
    let board: FactBoard
    /// All names, in order of precedence.
    let names: [String]
    /// Whether a desktop can be on this bus, and its report counts.
    private let asksDesktop: Bool
    private let makers: [SourceMaker]
    private var running: [any LifecycleSource] = []
    /// The connection that reported the focus, while it is on the bus.
    private var desktop: String?

    init(_ link: BusLink, _ makers: [SourceMaker], ignoring ignored: Set<String>, board: FactBoard, isOnDesktop: Bool) {
        self.link = link
        self.makers = makers
        self.board = board
        let own = [SourceSet.shell, Coordinator.freezerSource]
        names = makers.map(\.name) + own.filter { !ignored.contains($0) }
        asksDesktop = isOnDesktop && names.contains(SourceSet.shell)
    }

    // MARK: - Starting and stopping

    var isRunning: Bool { !running.isEmpty }

    /// What can be reported before anything has happened.
    var beginnings: [Change] {
        [
            (SourceSet.shell, .off("no desktop has called SetForeground yet")),
            (
                Coordinator.freezerSource,
                CgroupMount.unified == nil
                    ? .off("cgroup version 2 is not mounted; processes stopped by a signal are noticed anyway")
                    : .live
            ),
        ] + resting
    }

    private var resting: [Change] {
        makers.map { ($0.name, .off($0.obstacle ?? "idle until an observer registers")) }
    }

    /// - Returns: their status before they report themselves.
    func start() -> [Change] {
        guard running.isEmpty else { return [] }
        var changes: [Change] = []
        var started: [any LifecycleSource] = []
        for maker in makers where maker.obstacle == nil {
            started.append(maker.make(FactReporter(maker.name, board)))
            changes.append((maker.name, nil))
        }
        running = started
        return changes
    }

    /// Starts those that `start` has created: from now on they may report.
    func run() {
        for source in running { source.start() }
        if asksDesktop { askDesktop() }
    }

    func stop() -> [Change] {
        for source in running { source.stop() }
        running = []
        return resting
    }

    private var logind: LogindSource? { running.lazy.compactMap { $0 as? LogindSource }.first }

    /// Delays sleep or shutdown, so that programs can be notified before.
    func delay(_ delays: Set<LogindDelays.Delay>) { logind?.delay(delays) }

    func letSleep() { logind?.letGo() }

    /// A process has started to observe, or has moved to another cgroup.
    func present(_ process: Newcomer.ProcessFacts) {
        let observed = ObservedProcess(id: process.id, application: process.application)
        for source in running { source.observerHasCome(observed) }
    }

    func forget(_ process: ProcessID) {
        for source in running { source.observerHasGone(process) }
    }

    // MARK: - The desktop's own report

    /// Has KWin's script report which process has the focus; otherwise that is unknown until it changes. Scripts can't be
    /// called over the bus, but their shortcuts can be invoked, including one without a key.
    private func askDesktop() {
        link.findOwner(of: "org.kde.kglobalaccel") { [self] owner in
            guard case .success(let owner) = owner else { return }
            link.tell(
                owner,
                path: "/component/kwin",
                interface: "org.kde.kglobalaccel.Component",
                member: "invokeShortcut",
                [.string(SourceSet.shortcut)]
            )
        }
    }

    /// What desktop/kwin/notifybus-focus calls it.
    package static let shortcut = "NotifyBus focus"

    /// A desktop reports which process has the focus, 0 for none. This is valid until the desktop leaves the bus.
    func hear(_ name: String, _ pid: Int32) {
        board.post(SourceSet.shell, .live)
        board.post(SourceSet.shell, .focus(pid == 0 ? [] : [FocusedProcess(pid: pid)]))
        guard desktop != name else { return }
        if let desktop { link.callBus("RemoveMatch", [.string(OwnerChange.leavingRule(of: desktop))]) }
        desktop = name
        link.callBus("AddMatch", [.string(OwnerChange.leavingRule(of: name))])
        // It may have gone before the rule was in place.
        link.callBus("NameHasOwner", [.string(name)]) { [self] answer in
            if case .success(let values) = answer, values.first?.boolean == false { hasLeft(name) }
        }
    }

    /// A connection has left the bus.
    func hasLeft(_ name: String) {
        guard desktop == name else { return }
        desktop = nil
        link.callBus("RemoveMatch", [.string(OwnerChange.leavingRule(of: name))])
        board.post(SourceSet.shell, .off("the program that called SetForeground has left the bus"))
    }
}

extension SourceSet {
    /// The sources that an agent can use, and the environment in which it was started.
    static func makers(
        for bus: NotifyCenter.Bus,
        ignoring ignored: Set<String>,
        on loop: EventLoop,
        _ services: MachineServices
    ) -> [SourceMaker] {
        let environment = SystemFile.environment("DISPLAY", "WAYLAND_DISPLAY", "XDG_SESSION_TYPE", "SWAYSOCK")
        // The system bus's agent serves everyone; desktops do not concern it.
        let servesMachine = bus == .system
        let elsewhere = servesMachine ? "an agent on the system bus has no desktop" : nil
        let user = servesMachine ? nil : geteuid()
        let (display, path) = (environment["DISPLAY"] ?? "", environment["SWAYSOCK"] ?? "")
        let all = [
            SourceMaker("logind") { LogindSource($0, user: user, on: services) },
            SourceMaker("gnome", elsewhere ?? GnomeSource.obstacle) { GnomeSource($0, on: loop) },
            SourceMaker("x11", elsewhere ?? X11Source.obstacle(environment)) {
                ThreadedSource("x11", $0, on: loop) { X11Source(display: display, $0) }
            },
            SourceMaker("sway", elsewhere ?? SwaySource.obstacle(environment)) {
                ThreadedSource("sway", $0, on: loop) { SwaySource(path: path, $0) }
            },
        ]
        return all.filter { !ignored.contains($0.name) }
    }
}
