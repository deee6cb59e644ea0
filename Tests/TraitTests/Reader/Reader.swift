// SPDX-License-Identifier: Apache-2.0

import Dispatch
import GRDB
import Glibc
import NotifyBus
import NotifyGRDB
import Synchronization

/// database-reader ADDRESS FILE COUNT HOW - another process than the one that writes: prints the numbers of COUNT rows and
/// when it has read each, in nanoseconds of the monotonic clock. It looks each millisecond (`polls`), or is told of commits:
/// by an observation of the value (`values`), or of the changes (`changes`).
@main struct Reader {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 5, let count = Int(arguments[3]) else {
            return print("database-reader ADDRESS FILE COUNT polls|values|changes")
        }
        let pool = try DatabasePool(path: arguments[2])
        let samples = Samples(after: try await pool.read(newest), upTo: count)
        if arguments[4] == "polls" {
            ready()
            while !samples.isFull {
                samples.add(try await pool.read(newest))
                usleep(1_000)
            }
        } else {
            let center = NotifyCenter(bus: .address(arguments[1]))
            let shared = try NotifyDatabase(pool, name: "com.example.rows.changed", center: center)
            let refreshing = Task { try await shared.run() }
            let (looks, look) = AsyncThrowingStream.makeStream(of: Void.self)
            let observation: AnyDatabaseCancellable
            if arguments[4] == "values" {
                observation = ValueObservation.tracking(newest).start(
                    in: pool,
                    scheduling: .async(onQueue: .global()),
                    onError: { look.finish(throwing: $0) },
                    onChange: {
                        samples.add($0)
                        look.yield()
                    }
                )
            } else {
                observation = DatabaseRegionObservation(tracking: Table("sample")).start(
                    in: pool,
                    onError: { look.finish(throwing: $0) },
                    onChange: { database in
                        do { samples.add(try newest(database)) } catch { look.finish(throwing: error) }
                        look.yield()
                    }
                )
                look.yield()
            }
            var isReady = false
            for try await _ in looks {
                if !isReady { ready() }
                isReady = true
                if samples.isFull { break }
            }
            observation.cancel()
            refreshing.cancel()
        }
        for sample in samples.all { print(sample.number, sample.time) }
    }

    private static func ready() {
        print("ready")
        fflush(nil)
    }

    /// A row, and when it was read.
    struct Sample: FetchableRecord {
        let number, time: Int64

        init(row: Row) {
            number = row[0]
            time = monotonicNanoseconds()
        }
    }

    @Sendable private static func newest(_ database: Database) throws -> Sample? {
        try Sample.fetchOne(database, sql: "SELECT number FROM sample ORDER BY number DESC LIMIT 1")
    }

    /// The rows that were new when they were read.
    private final class Samples: Sendable {
        private let read = Mutex<[Sample]>([])
        private let last: Int64
        private let count: Int

        init(after sample: Sample?, upTo count: Int) { (last, self.count) = (sample?.number ?? 0, count) }

        var all: [Sample] { read.withLock { $0 } }
        var isFull: Bool { all.count >= count }

        func add(_ sample: Sample?) {
            guard let sample else { return }
            read.withLock { read in
                if sample.number > read.last?.number ?? last, read.count < count { read.append(sample) }
            }
        }
    }
}

private func monotonicNanoseconds() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}
