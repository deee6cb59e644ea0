// SPDX-License-Identifier: Apache-2.0

import CBridgeLinux
import Glibc

/// Keeps a connection to the broker: connects, and connects again. This is the whole thread of the broker.
struct BrokerLink {
    /// How long to wait before connecting again, in seconds: at first, and at the most. In between it doubles.
    private static let pauses = (first: 1.0, last: 60.0)

    let settings: Settings
    let exchange: Exchange
    let traffic: Traffic
    let log: Log

    /// Returns when the bridge is told to end, or the broker does not want it.
    func run() -> Exchange.End {
        var pause = Self.pauses.first
        var wasTold = false
        while !exchange.isEnding {
            let end: BrokerSession.End
            do {
                let session = try BrokerSession(settings, exchange, traffic, log)
                end = session.run()
                if session.wasOnline { (pause, wasTold) = (Self.pauses.first, false) }
            } catch {
                end = .lost(error.description, isTakenOver: false)
            }
            traffic.save()
            switch end {
            case .asTold: return .asTold
            case .refused(let reason): return .refused(reason)
            case .lost(_, isTakenOver: true):
                log.notice(
                    "another bridge has connected to \(settings.broker) with this one's id: two must not share one"
                )
                pause = Self.pauses.last
            case .lost(let reason, _):
                // Once until it comes back.
                if !wasTold {
                    log.notice("no connection to \(settings.broker): \(reason); trying again")
                } else {
                    log.detail("no connection to \(settings.broker): \(reason)")
                }
            }
            wasTold = true
            wait(pause * jitter())
            pause = min(pause * 2, Self.pauses.last)
        }
        return .asTold
    }

    /// Many that lost a broker at once should not all come back at once.
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
