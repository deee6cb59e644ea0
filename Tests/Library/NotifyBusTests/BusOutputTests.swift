// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyWire
import Testing

@Suite struct BusOutputTests {
    @Test func `what was sent leaves no memory behind, also if something is always queued`() throws {
        var pair: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | O_NONBLOCK, 0, &pair) == 0)
        defer { pair.forEach { close($0) } }
        let output = BusOutput()
        let message = [UInt8](repeating: 1, count: 5_000)
        var written = 0
        func write() {
            message.withUnsafeBytes { #expect(output.write($0, [], to: pair[0])) }
            written += message.count
        }
        while output.count < 300_000 { write() }
        var read = 0
        var buffer = [UInt8](repeating: 0, count: message.count)
        for _ in 0..<2_000 {
            read += max(0, Glibc.read(pair[1], &buffer, buffer.count))
            output.flush(to: pair[0])
            write()
            try #require(output.count > 0)
        }
        #expect(output.size < output.count + 100_000, "\(output.size) for \(output.count)")
        // Nothing got lost on the way.
        while read < written {
            let count = Glibc.read(pair[1], &buffer, buffer.count)
            try #require(count > 0)
            #expect(buffer[..<count].allSatisfy { $0 == 1 })
            read += count
            output.flush(to: pair[0])
        }
        #expect(read == written && output.isEmpty && output.size == 0)
    }
}
