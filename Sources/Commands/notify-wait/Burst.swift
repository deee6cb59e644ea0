// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import NotifyCore

/// Notifications handled together: a single one, or with `--settle` all that came within a short time.
struct Burst {
    /// One of its names.
    struct Entry {
        /// The last notification of the name.
        var arrival: Notification
        /// How often it came.
        var count: Int

        /// One access to the array that the entry is in, not two: how much of the second one the compiler would optimize away
        /// differs from run to run, and with it the program.
        mutating func add(_ arrival: Notification) {
            self.arrival = arrival
            count += 1
        }
    }

    /// The names, each once, in the order in which they first came.
    private(set) var entries: [Entry] = []
    /// The index of each name, once there are many.
    private var indices: [NotifyName: Int] = [:]
    /// Up to this many are few.
    private static let few = 8
    private(set) var last: Notification
    /// The number of notifications in it.
    private(set) var count = 0

    /// Whether it has as many names as may be queued anywhere.
    var isFull: Bool { entries.count >= WaitingRuns.limit }

    init(_ arrival: Notification) {
        last = arrival
        add(arrival)
    }

    mutating func add(_ arrival: Notification) {
        last = arrival
        count += 1
        if let index = index(of: arrival.name) {
            entries[index].add(arrival)
        } else {
            entries.append(Entry(arrival: arrival, count: 1))
            noteLast()
        }
    }

    private func index(of name: NotifyName) -> Int? {
        entries.count > Burst.few ? indices[name] : entries.firstIndex { $0.arrival.name == name }
    }

    private mutating func noteLast() {
        guard entries.count > Burst.few else { return }
        for index in (indices.isEmpty ? 0 : entries.count - 1)..<entries.count {
            indices[entries[index].arrival.name] = index
        }
    }
}

/// Determines when a burst is over.
struct Settling {
    /// A stream that does not pause must not be waited for forever.
    private static let longest = 10

    private let duration: Int64
    private(set) var burst: Burst?
    private var start: Int64 = 0

    init(_ duration: Duration) {
        self.duration = duration.inNanoseconds
    }

    /// When the burst is over if nothing more comes, on the monotonic clock.
    var deadline: Int64? {
        guard let burst else { return nil }
        if burst.isFull { return burst.last.moment }
        let (product, overflows) = duration.multipliedReportingOverflow(by: Int64(Settling.longest))
        let (end, passesEnd) = start.addingReportingOverflow(product)
        return min(burst.last.moment + duration, overflows || passesEnd ? .max : end)
    }

    mutating func add(_ arrival: Notification) {
        if burst == nil {
            start = arrival.moment
            burst = Burst(arrival)
        } else {
            burst?.add(arrival)
        }
    }

    /// Takes the burst, if it is over by `moment`.
    mutating func take(at moment: Int64) -> Burst? {
        guard let deadline, deadline <= moment else { return nil }
        return takeAll()
    }

    /// Takes the burst, whether it is over or not.
    mutating func takeAll() -> Burst? {
        defer { burst = nil }
        return burst
    }
}
