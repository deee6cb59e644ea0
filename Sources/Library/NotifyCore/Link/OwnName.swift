// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The unique name of the connection on which a center posts, by which it recognizes its own posts.
///
/// It is forgotten along with the connection, as another bus may give the name to another connection. So posts that are
/// still on their way then count as those of another connection.
final class OwnName: Sendable {
    private struct Contents {
        /// Including the NUL at its end; empty if there is none.
        var name: ContiguousArray<CChar> = []
    }

    private let contents = Monitor(Contents())

    /// Notes the name that the bus has assigned to the connection.
    func set(_ name: UnsafeRawBufferPointer) {
        contents.withLock { $0.name = ContiguousArray(name.map { CChar(bitPattern: $0) } + [0]) }
    }

    func forget() {
        contents.withLock { $0.name = [] }
    }

    func isName(of sender: UnsafePointer<CChar>) -> Bool {
        contents.withLock { contents in
            contents.name.withUnsafeBufferPointer { bytes in
                !bytes.isEmpty && bytes.baseAddress.map { strcmp($0, sender) } == 0
            }
        }
    }
}
