// SPDX-License-Identifier: Apache-2.0

import Glibc

extension NotifyName {
    /// Whether the name is written like this.
    package func hasBytes(_ bytes: UnsafeRawBufferPointer) -> Bool {
        // Contiguous in every name: see the initializers.
        string.utf8.withContiguousStorageIfAvailable { own in
            guard own.count == bytes.count, let ours = own.baseAddress, let theirs = bytes.baseAddress else {
                return false
            }
            return memcmp(ours, theirs, own.count) == 0
        } ?? false
    }
}
