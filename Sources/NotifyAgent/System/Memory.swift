// SPDX-License-Identifier: Apache-2.0

import CLinux

enum Memory {
    /// Returns unused memory of the allocator to the system. See malloc_trim(3).
    static func giveBack() { linux_give_memory_back() }
}
