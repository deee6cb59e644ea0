// SPDX-License-Identifier: Apache-2.0

/// What to report when the bus goes away and comes back. A value: it is told the time, in nanoseconds of the monotonic
/// clock.
struct BusAbsence {
    enum Report: Equatable {
        case away
        case back
        /// The agent had taken this program off the bus while it was stopped, as by ^Z.
        case resumed
        /// Nothing has listened at the address of the bus for some time.
        case ended
    }

    /// How soon after it continues a stopped program must notice that it has lost its connection, and how soon it must be
    /// back then: otherwise the bus itself is away.
    private static let resumption: Int64 = 5_000_000_000
    /// How long the address must have been without a listener, and how often to look. A bus that is restarted is back
    /// sooner.
    static let desertion: Int64 = 3_000_000_000
    private static let interval: Int64 = 500_000_000

    /// Until when a loss of the connection is put down to having been stopped.
    private var resumptionEnd: Int64?
    /// When to report a loss that was put down to that.
    private var lateReport: Int64?
    /// When to look at the address again; nil while the bus is there, and once it has ended.
    private var nextLook: Int64?
    /// Since when nothing has listened there.
    private var desertedSince: Int64?

    /// When `look` is to be called; nil for never.
    var deadline: Int64? {
        guard let lateReport else { return nextLook }
        return min(lateReport, nextLook ?? .max)
    }

    /// The process was continued.
    mutating func hasContinued(at now: Int64) { resumptionEnd = now + BusAbsence.resumption }

    mutating func hasBegun(at now: Int64) -> Report? {
        nextLook = now + BusAbsence.interval
        desertedSince = nil
        guard let resumptionEnd, now < resumptionEnd else { return .away }
        lateReport = now + BusAbsence.resumption
        return nil
    }

    mutating func hasEnded() -> Report {
        let wasStopped = lateReport != nil
        self = BusAbsence()
        return wasStopped ? .resumed : .back
    }

    /// - Parameter isDeserted: whether nothing listens at the address.
    mutating func look(at now: Int64, _ isDeserted: () -> Bool) -> Report? {
        if let lateReport, lateReport <= now {
            self.lateReport = nil
            return .away
        }
        guard let nextLook, nextLook <= now else { return nil }
        self.nextLook = now + BusAbsence.interval
        guard isDeserted() else {
            desertedSince = nil
            return nil
        }
        let since = desertedSince ?? now
        desertedSince = since
        guard now - since >= BusAbsence.desertion else { return nil }
        self.nextLook = nil
        return .ended
    }
}
