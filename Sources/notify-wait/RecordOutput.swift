// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc

/// Standard output, never blocking on its reader.
struct RecordOutput {
    private let format: RecordFormat
    private let end: UInt8
    private var record: [UInt8] = []
    private var written = 0

    init(_ settings: WaitSettings) {
        format = settings.isJSON ? .json : settings.format ?? .plain
        end = settings.endsWithNull ? 0 : UInt8(ascii: "\n")
    }

    /// How much a pipe accepts at once when poll(2) reports it as writable.
    private static let pageSize = 4_096

    /// Whether something has not been written yet.
    var isPending: Bool { written < record.count }

    /// Whether more can be added without leaving a record unwritten.
    var hasRoom: Bool { record.count - written < RecordOutput.pageSize }

    /// Whether `write` would make progress now.
    var isWritable: Bool {
        var descriptor = pollfd(fd: STDOUT_FILENO, events: Int16(POLLOUT), revents: 0)
        return poll(&descriptor, 1, 0) == 1
    }

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

    mutating func drop() {
        record.removeAll(keepingCapacity: record.capacity <= 2 * RecordOutput.pageSize)
        written = 0
    }

    /// Writes what is pending, or a page of it; to be called when standard output is writable.
    mutating func write() -> StandardStreams.WriteResult {
        let count = record.withUnsafeBytes { bytes in
            Glibc.write(
                STDOUT_FILENO,
                bytes.baseAddress.map { $0 + written },
                min(bytes.count - written, RecordOutput.pageSize)
            )
        }
        if count >= 0 {
            written += count
            return .written
        }
        switch errno {
        case EINTR, EAGAIN: return .written
        case EPIPE: return .readerGone
        default: return .failed(errno: errno)
        }
    }
}
