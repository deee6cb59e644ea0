// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc

/// Standard output, never blocking on its reader.
struct RecordOutput {
    private let format: RecordFormat
    private let end: UInt8
    private var record: [UInt8] = []
    private var written = 0
    private let output = NonblockingOutput(STDOUT_FILENO)

    init(_ settings: WaitSettings) {
        format = settings.isJSON ? .json : settings.format ?? .plain
        end = settings.endsWithNull ? 0 : UInt8(ascii: "\n")
    }

    /// How much is written at once.
    private static let pageSize = 4_096

    /// Whether something has not been written yet.
    var isPending: Bool { written < record.count }

    /// Whether more can be added without leaving a record unwritten.
    var hasRoom: Bool { record.count - written < RecordOutput.pageSize }

    /// Adds a record after the pending ones.
    mutating func add(_ arrival: Notification, count: Int, state: UInt64?) {
        if !isPending { drop() }
        format.write(
            arrival,
            count: count,
            state: state,
            isForTerminal: StandardStreams.outputIsTerminal,
            to: &record
        )
        record.append(end)
    }

    /// Adds the record of a heartbeat: that of a notification without a name.
    mutating func addHeartbeat(count: Int) {
        if !isPending { drop() }
        let isForTerminal = StandardStreams.outputIsTerminal
        format.write("", Clock.wall, count: count, state: nil, isForTerminal: isForTerminal, to: &record)
        record.append(end)
    }

    mutating func drop() {
        record.removeAll(keepingCapacity: record.capacity <= 2 * RecordOutput.pageSize)
        written = 0
    }

    /// Writes what is pending, or as much of it as its reader takes: `gaveUp` if that is nothing.
    mutating func write() -> StandardStreams.WriteResult {
        let count = record.withUnsafeBytes { output.write(UnsafeRawBufferPointer(rebasing: $0[written...])) }
        if count >= 0 {
            written += count
            return .written
        }
        switch errno {
        case EINTR: return .written
        case EAGAIN: return .gaveUp
        case EPIPE: return .readerGone
        default: return .failed(errno: errno)
        }
    }
}
