// SPDX-License-Identifier: Apache-2.0

#if Logging
    public import Logging
    public import NotifyBus
    import NotifyCore

    extension NotifyBus.NotifyCenter {
        /// Creates a center that logs what an administrator should know: each change of the connection, and once the first
        /// delivery or post that is lost, the first signal that is rejected, and each name that can't be posted.
        ///
        /// A connection is logged as `info`, everything else as `warning`. Names are logged without control characters, and
        /// no more than 100 that can't be posted. Nothing is logged on the thread that posts or observes.
        ///
        /// - Parameters:
        ///   - bus: the bus to use.
        ///   - waitsForBus: whether observers are registered once the bus is available, if it is not available yet.
        ///   - logger: logs, until the center is closed or released.
        public convenience init(bus: Bus = .session, waitsForBus: Bool = false, logger: Logger) {
            self.init(bus: bus, waitsForBus: waitsForBus)
            // More than there can be of what is logged once.
            let (events, event) = AsyncStream.makeStream(of: CenterEvent.self, bufferingPolicy: .bufferingOldest(1_000))
            core.onProblem { event.yield(.problem($0)) }
            _ = core.follow(Follower(change: { event.yield(.connection($0)) }, end: { event.finish() }))
            Task {
                var log = CenterLog(logger: logger)
                for await event in events { log.note(event) }
            }
        }
    }

    private enum CenterEvent: Sendable {
        case connection(CoreCenter.ConnectionChange)
        case problem(CenterProblem)
    }

    /// What has been logged of a center.
    private struct CenterLog {
        private static let mostNames = 100

        let logger: Logger
        private var refused: Set<CoreName> = []

        init(logger: Logger) { self.logger = logger }

        mutating func note(_ event: CenterEvent) {
            switch event {
            case .connection(let change):
                logger.log(
                    level: change.kind == .connected ? .info : .warning,
                    "NotifyBus is \(change.kind)",
                    metadata: change.error.map { ["reason": .string(plain($0.description))] }
                )
            case .problem(.lost):
                logger.warning("NotifyBus lost a delivery or a post; the center's statistics count them")
            case .problem(.rejected):
                logger.warning("NotifyBus rejected a signal that was no valid post; the center's statistics count them")
            case .problem(.refused(let name, let error)):
                guard refused.count < CenterLog.mostNames, refused.insert(name).inserted else { return }
                logger.warning(
                    "NotifyBus can't post a name",
                    metadata: ["name": .string(plain(name.string)), "reason": .string(plain(error.description))]
                )
            }
        }

        /// A name may come from anywhere; a line of a log must not.
        private func plain(_ text: String) -> String {
            var result = ""
            for scalar in text.unicodeScalars {
                switch scalar.properties.generalCategory {
                case .control, .format, .lineSeparator, .paragraphSeparator: result += scalar.escaped(asASCII: true)
                default: result.unicodeScalars.append(scalar)
                }
            }
            return result
        }
    }
#endif
