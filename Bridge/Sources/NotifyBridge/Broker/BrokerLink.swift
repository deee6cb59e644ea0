// SPDX-License-Identifier: Apache-2.0

import CBridgeLinux
import Glibc

/// Keeps a connection to the broker, reconnecting as needed. This is all that the broker's thread does.
struct BrokerLink {
    /// How long to wait before reconnecting, in seconds: initially, and at most. It doubles each time.
    private static let pauses = (first: 1.0, last: 60.0)

    /// A connection that lasted this long was a good one, in nanoseconds.
    private static let longEnough: Int64 = 30_000_000_000
    /// After this many shorter connections, it logs the likely reason.
    private static let suspicion = 3

    let settings: Settings
    let exchange: Exchange
    let traffic: Traffic
    let log: Log

    /// Returns when the bridge is asked to exit, or the broker refuses it.
    func run() -> Exchange.End {
        var pause = Self.pauses.first
        var wasTold = false
        var shortOnes = 0
        while !exchange.isEnding {
            let end: BrokerSession.End
            var lasted: Int64?
            do {
                let session = try BrokerSession(settings, exchange, traffic, log)
                end = session.run()
                lasted = session.onlineSince.map { Clock.now - $0 }
            } catch {
                end = .lost(error.description, isTakenOver: false)
            }
            traffic.endConnection()
            if let lasted {
                wasTold = false
                if lasted >= Self.longEnough { (pause, shortOnes) = (Self.pauses.first, 0) } else { shortOnes += 1 }
            }
            switch end {
            case .asTold: return .asTold
            case .refused(let reason): return .refused(reason)
            case .lost(_, isTakenOver: true):
                log.notice(
                    "another client connected to \(settings.broker) with the same client ID: each needs one of its own"
                )
                pause = Self.pauses.last
            case .lost(let reason, _):
                // Once, until the connection is back.
                let text = "no connection to \(settings.broker): \(reason); trying again"
                if wasTold { log.detail(text) } else { log.notice(text) }
                // Mosquitto 2.0 closes the connection of the client that came first, without giving a reason.
                if lasted != nil, shortOnes == Self.suspicion {
                    log.notice("connections do not last; another client may be using the same client ID")
                }
            }
            wasTold = true
            wait(pause * jitter())
            pause = min(pause * 2, Self.pauses.last)
        }
        return .asTold
    }

    /// Keeps bridges that lost the broker together from all returning together.
    private func jitter() -> Double { Double.random(in: 0.75...1.25) }

    private func wait(_ seconds: Double) {
        let deadline = Clock.now + Int64(seconds * 1_000_000_000)
        while !exchange.isEnding, Clock.now < deadline {
            var sources = [pollfd(fd: exchange.brokerWakeUp.descriptor, events: Int16(POLLIN), revents: 0)]
            waitForEvents(&sources, until: deadline)
            if sources[0].revents != 0 { exchange.brokerWakeUp.clear() }
        }
    }
}
