// SPDX-License-Identifier: Apache-2.0

import CLinux

enum Memory {
    /// Gives memory back that the allocator keeps. See malloc_trim(3).
    static func giveBack() { linux_give_memory_back() }
}
