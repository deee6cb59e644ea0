// SPDX-License-Identifier: Apache-2.0

import CLinux

enum Memory {
    /// Returns unused memory of the allocator to the system. See malloc_trim(3).
    static func giveBack() { linux_give_memory_back() }

    /// Makes the allocator keep little unused memory, in the whole process. See mallopt(3).
    ///
    /// Some 10 MB stayed resident without it after 250 connections at their limits had left.
    static func keepLittle() { linux_keep_little_memory() }
}
