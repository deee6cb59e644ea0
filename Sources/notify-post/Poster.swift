// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore

/// Posts name after name so that every one of them counts.
struct Poster {
    private let center: NotifyCenter
    private var unflushed = 0
    private var hasOwnedName = false
    /// How many names were posted.
    private(set) var count = 0

    init(_ center: NotifyCenter) {
        self.center = center
    }

    /// Comes back when the bus has answered.
    func connect() throws(NotifyBusError) {
        try center.synchronize()
    }

    mutating func post(_ name: NotifyName) throws(NotifyBusError) {
        try center.post(name)
        count += 1
        if !hasOwnedName, name.string.utf8.starts(with: "user.uid.".utf8) {
            hasOwnedName = true
        }
        // The center merges equal names once 4,096 posts wait; far fewer than that ever do, so none is merged.
        unflushed += 1
        if unflushed >= 1_000 {
            try center.flush()
            unflushed = 0
        }
    }

    /// Comes back when the bus has taken every post.
    func finish() throws(NotifyBusError) {
        try center.synchronize()
        // Those who hear of a `user.uid.` name ask the bus who posted it, and the bus knows only who is still there.
        if hasOwnedName {
            poll(nil, 0, 250)
        }
    }
}
