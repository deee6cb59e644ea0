// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The unique name of the connection that a center posts on, by which it knows its own posts again.
///
/// It is forgotten with the connection: another bus may give the name to somebody else. So what is still on its way then
/// counts as somebody else's post.
final class OwnName: Sendable {
    private struct Contents {
        /// With the NUL at its end; empty if there is none.
        var name: ContiguousArray<CChar> = []
    }

    private let contents = Monitor(Contents())

    /// Notes the name that the bus has given to the connection.
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
