// SPDX-License-Identifier: Apache-2.0

import Glibc

extension NotifyName {
    /// The name that a signal posts; nil unless path, interface and name fit each other.
    package init?(postedAt path: String, interface: String, text: UnsafeRawBufferPointer) {
        guard let name = try? NotifyName(utf8: text), WireFormat.path(for: name) == path,
            WireFormat.interface(for: name) == interface
        else { return nil }
        self = name
    }

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
