// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyCore

/// `notify-lifecycle watch`: prints changes until a signal ends the process or standard output has no reader any more.
///
/// Signals have their default effect: there is nothing to clean up, and a shell sees what ended the command.
struct WatchCommand {
    private let settings: LifecycleSettings
    private let diagnostics: Diagnostics
    private let mailbox: Mailbox<AgentWatch.Event>
    private let center: NotifyCenter
    /// The deadline for the first contact.
    private var deadline: Deadline?
    private var isConnected = false
    private var isBusAway = false
    private var hasSeenNonsense = false
    /// The observers, by connection name. Those that are gone stay until their last change has been printed.
    private var observers: [String: AgentInterface.ListEntry] = [:]
    /// The changes to be printed once their observers are known.
    private var changes: [StateChange] = []
    /// The deadline for the agent's list of observers; nil if it was not requested.
    private var listDeadline: Deadline?
    /// Whether the initial observers have been printed.
    private var hasBegun = false

    init(_ settings: LifecycleSettings, _ diagnostics: Diagnostics) throws(CommandFailure) {
        self.settings = settings
        self.diagnostics = diagnostics
        mailbox = try Mailbox()
        deadline = Deadline(after: settings.timeout)
        let peer = AgentWatch(mailbox, on: settings.common.bus, wantsFacts: settings.common.verbosity == .verbose)
        center = NotifyCenter(bus: settings.common.notifyBus, peer: peer)
        do throws(NotifyBusError) {
            try center.open()
        } catch {
            throw CommandFailure(error)
        }
    }

    /// Returns when standard output has no reader any more.
    consuming func run() throws(CommandFailure) -> ExitCode {
        while true {
            while let event = mailbox.take() {
                if try !handle(event) { return .done }
            }
            let refused = mailbox.takeRefused()
            if refused > 0 { diagnostics.error("\(refused) changes were lost: the output was not read fast enough") }
            if let deadline, deadline.hasPassed { throw isConnected ? .lateAgent(on: settings.common.bus) : .lateBus }
            if let listDeadline, listDeadline.hasPassed, try !printChanges(nil) { return .done }
            var descriptors = [
                pollfd(fd: mailbox.descriptor, events: Int16(POLLIN), revents: 0),
                // Without events it still reports that the reader has gone.
                pollfd(fd: STDOUT_FILENO, events: 0, revents: 0),
            ]
            poll(&descriptors, 2, (listDeadline ?? deadline)?.milliseconds ?? -1)
            mailbox.clear()
            if Int32(descriptors[1].revents) & (POLLERR | POLLHUP) != 0 { return .done }
        }
    }

    /// Returns false if standard output has no reader any more.
    private mutating func handle(_ event: AgentWatch.Event) throws(CommandFailure) -> Bool {
        switch event {
        case .connected: isConnected = true
        case .changed(let change):
            changes.append(change)
            askForObservers()
        case .listed(let observers):
            return try printChanges(observers)
        case .learned(let fact):
            return try StandardStreams.print(settings.isJSON ? fact.json : fact.text)
        case .live(let hasAgent):
            deadline = nil
            if isBusAway {
                diagnostics.notice(hasAgent ? "the bus is back" : "the bus is back; waiting for the agent")
            } else {
                diagnostics.detail("watching")
            }
            isBusAway = false
            if hasAgent { askForObservers() }
        case .nonsense:
            if !hasSeenNonsense {
                diagnostics.error("ignoring invalid changes that the agent announces")
            }
            hasSeenNonsense = true
        case .agentLost: diagnostics.notice("the agent went away; waiting for it to come back")
        case .agentReturned: diagnostics.notice("the agent is back")
        case .busLost:
            diagnostics.notice("the bus went away; waiting for it to come back")
            isBusAway = true
        case .failed(let failure): throw failure
        }
        return true
    }

    /// Requests the list of observers, unless that is pending: a change contains neither the program nor who decided.
    private mutating func askForObservers() {
        if listDeadline != nil { return }
        listDeadline = Deadline(after: .seconds(1))
        let mailbox = mailbox
        center.perform { link in
            link.callAgent(AgentInterface.List()) { answer in
                mailbox.put(.listed(try? answer.reading(AgentInterface.List.self).get().connections))
            }
        }
    }

    /// Prints what has waited for the agent's reply, and at first the initial observers.
    ///
    /// - Parameter list: the observers; nil if the agent did not reply.
    /// - Returns: false if standard output has no reader any more.
    private mutating func printChanges(_ list: [AgentInterface.ListEntry]?) throws(CommandFailure) -> Bool {
        listDeadline = nil
        // An earlier list doesn't say who decided on a later change.
        for name in observers.keys { observers[name]?.decider = nil }
        if let list {
            var now: [String: AgentInterface.ListEntry] = [:]
            for observer in list { now[observer.name] = observer }
            observers.merge(now) { $1 }
            defer { observers = now }
            if !hasBegun {
                hasBegun = true
                if try !StandardStreams.print(firstBlock(list)) { return false }
            }
            return try writeChanges()
        }
        return try writeChanges()
    }

    private mutating func writeChanges() throws(CommandFailure) -> Bool {
        defer { changes = [] }
        let isDetailed = settings.common.verbosity == .verbose
        for change in changes {
            let observer = observers[change.change.connection]
            let line = settings.isJSON ? change.json(observer) : change.text(observer, isDetailed: isDetailed)
            if try !StandardStreams.print(line) { return false }
        }
        return true
    }

    private func firstBlock(_ list: [AgentInterface.ListEntry]) -> String {
        let list = AgentInterface.ListEntry.sorted(list)
        if settings.isJSON { return list.map(\.json).joined() }
        if list.isEmpty { return "" }
        let table = ObserverTable(list, isDetailed: false)
        return table.text(withHeader: settings.common.verbosity != .quiet, now: Clock.timeOfDay / 1_000_000_000)
    }
}
