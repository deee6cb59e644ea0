// SPDX-License-Identifier: Apache-2.0

import GRDB
import Glibc
import NotifyBus
import NotifyGRDB

/// database-reader ADDRESS FILE COUNT told|polls - another process than the one that writes: prints how long it takes from a
/// commit until it has read the row, in microseconds: the median of COUNT. It is told of commits, or looks each millisecond.
@main struct Reader {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 5, let count = Int(arguments[3]) else {
            return print("database-reader ADDRESS FILE COUNT told|polls")
        }
        let pool = try DatabasePool(path: arguments[2])
        var times = Times(after: try await pool.read(newest))
        func ready() {
            print("ready")
            fflush(nil)
        }
        if arguments[4] == "polls" {
            ready()
            while times.all.count < count {
                times.add(try await pool.read(newest))
                usleep(1_000)
            }
        } else {
            let center = NotifyCenter(bus: .address(arguments[1]))
            let shared = try NotifyDatabase(pool, name: "com.example.rows.changed", center: center)
            let refreshing = Task { try await shared.run() }
            var isReady = false
            for try await sample in ValueObservation.tracking(newest).values(in: pool) {
                if !isReady { ready() }
                isReady = true
                times.add(sample)
                if times.all.count >= count { break }
            }
            refreshing.cancel()
        }
        print(times.all.sorted()[times.all.count / 2] / 1_000)
    }

    private struct Sample: FetchableRecord {
        /// In nanoseconds: how long it was before it was read that it was about to be committed.
        let number, age: Int64

        init(row: Row) {
            number = row[0]
            age = monotonicNanoseconds() - row[1]
        }
    }

    @Sendable private static func newest(_ database: Database) throws -> Sample? {
        try Sample.fetchOne(database, sql: "SELECT number, time FROM sample ORDER BY number DESC LIMIT 1")
    }

    private struct Times {
        private(set) var all: [Int64] = []
        private var last: Int64

        init(after sample: Sample?) { last = sample?.number ?? 0 }

        mutating func add(_ sample: Sample?) {
            guard let sample, sample.number > last else { return }
            last = sample.number
            all.append(sample.age)
        }
    }
}

private func monotonicNanoseconds() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}
