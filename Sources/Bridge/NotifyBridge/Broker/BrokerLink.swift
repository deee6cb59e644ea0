// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyCore

/// Keeps a connection to the broker, reconnecting as needed. This is all that the broker's thread does.
struct BrokerLink {
    /// How long to wait before reconnecting, in seconds: initially, and at most. It doubles each time.
    private static let pauses = (first: 1.0, last: 60.0)

    /// A connection that lasted this long was a good one, in nanoseconds.
    private static let longEnough: Int64 = 30_000_000_000
    /// After this many shorter connections, it logs the likely reason.
    private static let suspicion = 3

    /// Why the broker's thread has ended.
    enum End: Sendable {
        case asTold
        /// There is no point in continuing, with the reason.
        case refused(String)
    }

    private let configuration: BridgeConfiguration
    private let exchange: Exchange
    private let traffic: Traffic
    private let diagnostics: Diagnostics

    init(
        _ configuration: BridgeConfiguration,
        _ exchange: Exchange,
        _ traffic: Traffic,
        _ diagnostics: Diagnostics
    ) {
        self.configuration = configuration
        self.exchange = exchange
        self.traffic = traffic
        self.diagnostics = diagnostics
    }

    /// Returns when the bridge is asked to exit, or the broker refuses it.
    func run() -> End {
        var pause = Self.pauses.first
        var wasTold = false
        var shortOnes = 0
        while !exchange.isEnding {
            let end: BrokerSession.End
            var lasted: Int64?
            var hasProgressed = false
            do {
                let session = try BrokerSession(configuration, exchange, traffic, diagnostics)
                end = session.run()
                lasted = session.onlineSince.map { Clock.monotonic - $0 }
                hasProgressed = session.hasProgressed
            } catch {
                end = .lost(error.description, .other)
            }
            if let lasted {
                wasTold = false
                if lasted >= Self.longEnough {
                    (pause, shortOnes) = (Self.pauses.first, 0)
                } else if !traffic.hasEndedByContent {
                    shortOnes += 1
                }
                // The broker takes names, and ends the connection because of one behind them: it is soon found.
                if hasProgressed, traffic.hasEndedByContent { pause = Self.pauses.first }
            }
            switch end {
            case .asTold: return .asTold
            case .refused(let reason): return .refused(reason)
            case .lost(_, .takeover):
                diagnostics.notice(
                    "another client connected to \(configuration.broker) with the same client ID: each needs one of its own"
                )
                pause = Self.pauses.last
            case .lost(let reason, _):
                // Once, until the connection is back.
                let text = "no connection to \(configuration.broker): \(reason); trying again"
                if wasTold { diagnostics.detail(text) } else { diagnostics.notice(text) }
                // Mosquitto 2.0 closes the connection of the client that came first, without giving a reason.
                if lasted != nil, shortOnes == Self.suspicion, !traffic.hasEndedByContent {
                    diagnostics.notice("connections do not last; another client may be using the same client ID")
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
        let deadline = Clock.monotonic + Int64(seconds * 1_000_000_000)
        while !exchange.isEnding, Clock.monotonic < deadline {
            var sources = [pollfd(fd: exchange.brokerWakeUp.descriptor, events: Int16(POLLIN), revents: 0)]
            waitForEvents(&sources, until: deadline)
            if sources[0].revents != 0 { exchange.brokerWakeUp.clear() }
        }
    }
}

/// Waits until a descriptor is ready for one of its events, or until a time.
///
/// - Parameter until: on the monotonic clock, in nanoseconds; nil for no limit.
func waitForEvents(_ sources: inout [pollfd], until time: Int64?) {
    let timeout = time.map { MonotonicTime(nanoseconds: $0).millisecondsFromNow } ?? -1
    if poll(&sources, nfds_t(sources.count), timeout) < 0 {
        for index in sources.indices { sources[index].revents = 0 }
    }
}
