// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyCore

/// `notify-lifecycle watch`: prints changes until a signal ends the process or nobody reads them.
///
/// Signals have their default effect: there is nothing to clean up, and a shell sees what ended the command.
struct Watcher {
    private let settings: LifecycleSettings
    private let diagnostics: Diagnostics
    private let mailbox: Mailbox<AgentWatch.Event>
    private let center: NotifyCenter
    /// By when the first contact must have been made.
    private var deadline: Deadline?
    private var isBusAway = false
    private var hasSeenNonsense = false

    init(_ settings: LifecycleSettings, _ diagnostics: Diagnostics) throws(LifecycleFailure) {
        self.settings = settings
        self.diagnostics = diagnostics
        do throws(ResourceError) {
            mailbox = try Mailbox()
        } catch {
            throw LifecycleFailure(error.message)
        }
        deadline = Deadline(after: settings.timeout)
        let peer = AgentWatch(mailbox, on: settings.common.bus, wantsFacts: settings.common.verbosity == .verbose)
        center = NotifyCenter(bus: settings.common.notifyBus, peer: peer)
        do throws(NotifyBusError) {
            try center.open()
        } catch {
            throw LifecycleFailure(error)
        }
    }

    /// Returns when nobody reads standard output any more.
    consuming func run() throws(LifecycleFailure) -> ExitCode {
        while true {
            while let event = mailbox.take() {
                if try !handle(event) { return .done }
            }
            let refused = mailbox.takeRefused()
            if refused > 0 { diagnostics.error("\(refused) changes were lost: nobody read the output") }
            if let deadline, deadline.hasPassed { throw .lateAgent }
            var descriptors = [
                pollfd(fd: mailbox.descriptor, events: Int16(POLLIN), revents: 0),
                // Without events it still reports that the reader is gone.
                pollfd(fd: STDOUT_FILENO, events: 0, revents: 0),
            ]
            poll(&descriptors, 2, deadline?.milliseconds ?? -1)
            mailbox.clear()
            if Int32(descriptors[1].revents) & (POLLERR | POLLHUP) != 0 { return .done }
        }
    }

    /// Returns false if nobody reads standard output any more.
    private mutating func handle(_ event: AgentWatch.Event) throws(LifecycleFailure) -> Bool {
        switch event {
        case .changed(let change):
            return try write(
                settings.isJSON ? change.json : change.text(isDetailed: settings.common.verbosity == .verbose)
            )
        case .learned(let fact):
            return try write(settings.isJSON ? fact.json : fact.text)
        case .live(let hasAgent):
            deadline = nil
            if isBusAway {
                diagnostics.notice(hasAgent ? "the bus is back" : "the bus is back; waiting for the agent")
            } else {
                diagnostics.detail("watching")
            }
            isBusAway = false
        case .nonsense:
            if !hasSeenNonsense {
                diagnostics.error("the agent announces changes that make no sense; these are left out")
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

    private func write(_ line: String) throws(LifecycleFailure) -> Bool {
        switch StandardStreams.write(line, to: STDOUT_FILENO) {
        case .written: return true
        case .readerGone: return false
        case .failed(let number):
            throw LifecycleFailure("can't write to standard output: \(Diagnostics.text(of: number))")
        }
    }
}
