// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyCore

/// A bridge between one bus and one broker.
enum Bridge {
    /// How long a bridge that is asked to exit may need, and how much of that the bus may.
    private static let farewell = Duration.seconds(5)
    private static let busFarewell = Duration.seconds(1)

    /// Runs until SIGTERM, SIGINT or SIGHUP, or until it can't continue.
    static func run(
        _ configuration: BridgeConfiguration,
        on bus: NotifyCenter.Bus,
        _ state: StateFolder,
        _ diagnostics: Diagnostics
    ) -> ExitCode {
        do {
            return try serve(configuration, bus, state, diagnostics)
        } catch let error as NotifyBusError {
            return diagnostics.fail(CommandFailure(lateBus: error))
        } catch {
            return diagnostics.fail(error)
        }
    }

    private static func serve(
        _ configuration: BridgeConfiguration,
        _ bus: NotifyCenter.Bus,
        _ state: StateFolder,
        _ diagnostics: Diagnostics
    ) throws -> ExitCode {
        let inbox = try Mailbox<BridgeEvent>()
        let exchange = try Exchange()
        let service = NotifyCenter(bus: bus, peer: StatusService(configuration.broker, exchange, inbox))
        try service.open()
        defer { try? service.close(timeout: nil) }
        switch inbox.next(until: Deadline(after: Deadline.busLimit)) {
        case .isServing: break
        case .cannotServe(let reason):
            diagnostics.error(reason)
            return .failed
        case .busIsLost(let error): throw error
        case .brokerEnded, nil:
            diagnostics.error("the bus did not answer; it may be stopped or overloaded")
            return .unavailable
        }
        let signals = try Signals(only: [SIGTERM, SIGINT, SIGHUP])
        StandardStreams.wait(until: nil, or: signals)
        let origin = try state.origin()
        let center = NotifyCenter(bus: bus)
        // Before the broker, so that everything posted after the log says "connected" crosses.
        let observation = try observe(configuration.exports, center, exchange, diagnostics)
        try EngineThread(name: "notify-bridge") {
            let traffic = Traffic(configuration, origin, state, exchange, center, diagnostics)
            inbox.put(.brokerEnded(BrokerLink(configuration, exchange, traffic, diagnostics).run()))
        }.detach()
        let code = wait(inbox, signals, exchange, center, diagnostics)
        withExtendedLifetime(observation) {}
        return code
    }

    /// - Returns: nil if nothing is exported.
    private static func observe(
        _ exports: NameRules,
        _ center: NotifyCenter,
        _ exchange: Exchange,
        _ diagnostics: Diagnostics
    ) throws -> NotifyCenter.Observation? {
        let exported = NotifySubject(names: Array(exports.names), prefixes: exports.prefixes.map { NamePrefix($0) })
        if exported.names.isEmpty, exported.prefixes.isEmpty { return nil }
        return try center.addObserver(matching: exported, ignoringOwnPosts: true, timeout: .seconds(25)) { name in
            switch exports.judge(name) {
            case .crosses: exchange.export(name)
            // A prefix may match names that never cross.
            case .notListed: break
            case .unprintable: exchange.refuseUnprintable(name, isIncoming: false, diagnostics)
            }
        }
    }

    /// The main thread waits for the end.
    private static func wait(
        _ inbox: Mailbox<BridgeEvent>,
        _ signals: Signals,
        _ exchange: Exchange,
        _ center: NotifyCenter,
        _ diagnostics: Diagnostics
    ) -> ExitCode {
        var deadline: Deadline?
        while true {
            var sources = [inbox.descriptor, signals.descriptor].map {
                pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
            }
            poll(&sources, 2, deadline?.milliseconds ?? -1)
            while signals.next() != nil {
                // The sender of a second signal does not want to wait.
                guard deadline == nil else { return .done }
                deadline = Deadline(after: farewell)
                // Earlier posts cross, if the bus passes them on in time.
                try? center.barrier(timeout: busFarewell)
                exchange.endBroker()
            }
            inbox.clear()
            while let event = inbox.take() {
                switch event {
                case .brokerEnded(.asTold): return .done
                case .brokerEnded(.refused(let reason)):
                    diagnostics.error(reason)
                    return .failed
                case .busIsLost:
                    diagnostics.error("The bus went away.")
                    return .unavailable
                case .isServing, .cannotServe: break
                }
            }
            if deadline?.hasPassed == true { return .done }
        }
    }
}
