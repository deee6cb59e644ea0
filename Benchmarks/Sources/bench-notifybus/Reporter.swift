// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyBus
import Synchronization

/// When an observer reports an arrival.
enum Report: Sendable {
    case each
    case every(Int)
    case end
    case last(Int)
    /// Never, since the callback doesn't return.
    case stalled

    init(_ text: String) {
        let parts = text.split(separator: ":")
        let count = parts.count == 2 ? Int(parts[1]) : nil
        switch (parts.first, count) {
        case ("every", let count?): self = .every(count)
        case ("last", let count?): self = .last(count)
        case ("end", _): self = .end
        case ("stalled", _): self = .stalled
        default: self = .each
        }
    }
}

/// Counts what arrives and writes records to standard output: the time, and a count.
final class Reporter: Sendable {
    let report: Report
    private let end: NotifyName?
    private let deliveries = Atomic<Int>(0)

    init(report: Report, prefix: String) {
        self.report = report
        end = try? NotifyName("\(prefix).end")
    }

    /// Records an arrival.
    func delivered(_ name: NotifyName) {
        let count = deliveries.wrappingAdd(1, ordering: .relaxed).newValue
        switch report {
        case .each: write(now(), count)
        case .every(let number): if count % number == 0 { write(now(), count) }
        case .end: if name == end { write(now(), count) }
        case .last(let number):
            write(now(), count)
            if count == number { exit(0) }
        case .stalled: while true { pause() }
        }
    }

    /// Writes one record.
    func write(_ time: Int, _ count: Int) {
        withUnsafeBytes(of: (Int64(time), Int64(count))) { record in
            // The reader may have exited.
            if Glibc.write(STDOUT_FILENO, record.baseAddress, record.count) != record.count { exit(0) }
        }
    }
}

/// The monotonic clock, in nanoseconds.
func now() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Ends the program with a message on standard error.
func fail(_ message: String) -> Never {
    let line = Array("\(message)\n".utf8)
    _ = write(STDERR_FILENO, line, line.count)
    exit(1)
}
