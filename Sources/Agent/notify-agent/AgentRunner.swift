// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyAgent
import NotifyCore

/// The main thread: it sleeps until the agent reports something, or a signal comes.
enum AgentRunner {
    static func run(
        _ settings: AgentSettings,
        _ configuration: Agent.Configuration,
        _ logger: Logger,
        _ diagnostics: Diagnostics,
        busLimit: Duration = Deadline.busLimit
    ) -> ExitCode {
        raiseDescriptorLimit()
        let inbox: Mailbox<Agent.Report>
        let signals: Signals
        let service: AgentService
        do {
            // Before the threads are started, so that none of them receives the signals.
            inbox = try Mailbox()
            signals = try Signals()
            StandardStreams.wait(until: nil, or: signals)
            var configuration = configuration
            configuration.bequest = FileStore.takeBequest()
            service = try AgentService(
                bus: settings.common.notifyBus,
                configuration: configuration,
                logger: logger
            ) { inbox.put($0) }
        } catch {
            return diagnostics.fail(error)
        }
        let code = serve(service, inbox, signals, within: busLimit, logger, diagnostics)
        if let bequest = service.stop(leaves: code == .done && FileStore.isThere) {
            FileStore.keep(bequest, logger)
            bequest.close()
        }
        return code
    }

    /// Each observer takes two descriptors. This program does not call select(2), the reason for a low soft limit.
    private static func raiseDescriptorLimit() {
        var limit = rlimit()
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        guard getrlimit(resource, &limit) == 0, limit.rlim_cur < limit.rlim_max else { return }
        limit.rlim_cur = limit.rlim_max
        setrlimit(resource, &limit)
    }

    private static func serve(
        _ service: AgentService,
        _ inbox: Mailbox<Agent.Report>,
        _ signals: Signals,
        within limit: Duration,
        _ logger: Logger,
        _ diagnostics: Diagnostics
    ) -> ExitCode {
        var hasServed = false
        var deadline = Deadline(after: limit)
        while true {
            var sources = [
                pollfd(fd: inbox.descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: signals.descriptor, events: Int16(POLLIN), revents: 0),
            ]
            guard poll(&sources, 2, hasServed ? -1 : deadline.milliseconds) >= 0 else { continue }
            while let signal = signals.next() {
                if signal.number == SIGHUP {
                    service.reload()
                    continue
                }
                logger.notice("terminating on signal \(signal.number)")
                _ = NotifySocket.tell("STOPPING=1", within: .seconds(1))
                return .done
            }
            inbox.clear()
            while let event = inbox.take() {
                if case .ready = event { hasServed = true }
                if case .predecessorAnswers = event { deadline = Deadline(after: limit) }
                if case .busIsLost(let error) = event, hasServed {
                    // Usually the end of a session.
                    diagnostics.notice(error.description)
                    return .unavailable
                }
                if let code = deal(with: event, logger, diagnostics) { return code }
            }
            if !hasServed, deadline.hasPassed {
                diagnostics.error("the bus did not answer; it may be stopped or overloaded")
                return .unavailable
            }
        }
    }

    /// - Returns: the exit code, if the event ends the program.
    private static func deal(with event: Agent.Report, _ logger: Logger, _ diagnostics: Diagnostics) -> ExitCode? {
        switch event {
        case .ready:
            logger.notice("ready")
            if let error = NotifySocket.tell("READY=1") { logger.warning("can't notify $NOTIFY_SOCKET: \(error)") }
            FileStore.clear()
            return nil
        case .nameIsTaken(let owner):
            let who = owner.map { "process \($0)" } ?? "another process"
            diagnostics.error("another agent is already running, \(who); use '--replace' to replace it")
            return .failed
        case .predecessorAnswers: return nil
        case .wasReplaced:
            logger.notice("terminating: replaced by another agent")
            _ = NotifySocket.tell("STOPPING=1", within: .seconds(1))
            return .done
        case .refused(let message):
            diagnostics.error("the bus refused the name org.notifybus.Agent1: \(message)")
            return .failed
        case .busIsLost(let error):
            diagnostics.error(error.description)
            return ExitCode(error) == .usage ? .failed : .unavailable
        }
    }
}
