// SPDX-License-Identifier: Apache-2.0

import CBridgeLinux
import Glibc
package import NotifyBus

/// A bridge between one bus and one broker.
package enum Bridge {
    /// Runs until SIGTERM, SIGINT or SIGHUP, or until it can't continue.
    ///
    /// - Returns: the exit status: see notify-bridge(8).
    package static func run(_ settings: Settings, on bus: NotifyCenter.Bus, state: StateFolder, _ log: Log) -> Int32 {
        do {
            return try serve(settings, bus, state, log)
        } catch let error as NotifyBusError {
            log.error(error.description)
            return error.code == .noBus || error.code == .disconnected ? ExitStatus.noBus : ExitStatus.failed
        } catch StatusService.Fault.noBus(let reason) {
            log.error("Can't reach the bus: \(reason)")
            return ExitStatus.noBus
        } catch StatusService.Fault.anotherBridge {
            log.error("Another bridge already serves this bus: it owns \(StatusService.name).")
            return ExitStatus.failed
        } catch StatusService.Fault.notAllowed(let reason) {
            log.error("The bus does not let this bridge own \(StatusService.name): \(reason)")
            return ExitStatus.failed
        } catch {
            log.error("\(error)")
            return ExitStatus.failed
        }
    }

    private static func serve(
        _ settings: Settings,
        _ bus: NotifyCenter.Bus,
        _ state: StateFolder,
        _ log: Log
    ) throws -> Int32 {
        // Writing over TLS to a broker that is gone would kill the process.
        signal(SIGPIPE, SIG_IGN)
        var signals = sigset_t()
        sigemptyset(&signals)
        for number in [SIGTERM, SIGINT, SIGHUP] { sigaddset(&signals, number) }
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        let endings = bridge_signalfd(&signals)
        guard endings >= 0 else {
            throw ConfigurationError("Cannot create a signalfd: \(String(cString: strerror(errno))).")
        }
        defer { close(endings) }

        let service = try StatusService(on: bus, broker: settings.broker)
        let origin = try state.origin()
        let exchange = try Exchange()
        let center = NotifyCenter(bus: bus)
        // Before the broker, so that everything posted after the log says "connected" crosses.
        let observations = try observe(settings.exports, center, exchange, log)
        try startThread("notify-bridge") {
            let traffic = Traffic(settings, origin, state, exchange, center, log)
            exchange.ended(BrokerLink(settings: settings, exchange: exchange, traffic: traffic, log: log).run())
        }
        let status = wait(endings, service, exchange, log)
        withExtendedLifetime(observations) {}
        return status
    }

    private static func observe(
        _ exports: NameRules,
        _ center: NotifyCenter,
        _ exchange: Exchange,
        _ log: Log
    ) throws -> NotifyCenter.Observation {
        let callback: @Sendable (NotifyName) -> Void = { name in
            switch exports.judge(name) {
            case .crosses: exchange.export(name)
            // A prefix may match names that never cross.
            case .notListed: break
            case .unprintable: exchange.refuseUnprintable(name, isIncoming: false, log)
            }
        }
        let exported = NotifySubject.any(of: [.names(Array(exports.names))] + exports.prefixes.map { .prefix($0) })
        return try center.addObserver(for: exported, ignoringOwnPosts: true, using: callback)
    }

    /// The main thread: answers on the bus, and waits for the end.
    private static func wait(_ endings: Int32, _ service: StatusService, _ exchange: Exchange, _ log: Log) -> Int32 {
        var isEnding = false
        // A bridge that is asked to exit while connecting need not wait for the connection.
        var deadline: Int64?
        while true {
            var sources = [endings, service.descriptor, exchange.mainWakeUp.descriptor].map {
                pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
            }
            waitForEvents(&sources, until: deadline)
            while bridge_signal(endings) != 0 {
                if !isEnding { exchange.endBroker() }
                isEnding = true
                deadline = deadline ?? Clock.now + 2_000_000_000
            }
            if sources[1].revents != 0 { service.serve { exchange.status } }
            switch exchange.end {
            case .asTold: return 0
            case .refused(let reason):
                log.error(reason)
                return ExitStatus.failed
            case nil: break
            }
            if let deadline, deadline <= Clock.now { return 0 }
            if !service.isConnected {
                log.error("The bus went away.")
                return ExitStatus.noBus
            }
        }
    }
}

/// The exit statuses of the program.
package enum ExitStatus {
    package static let failed: Int32 = 1
    /// `EX_USAGE` of `<sysexits.h>`.
    package static let usage: Int32 = 64
    /// `EX_UNAVAILABLE` of `<sysexits.h>`.
    package static let noBus: Int32 = 69
}
