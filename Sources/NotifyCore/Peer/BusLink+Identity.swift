// SPDX-License-Identifier: Apache-2.0

extension BusLink {
    /// Empties the caches of what was read. Of little size themselves, they lie among what was freed since, and keep the
    /// allocator from returning it.
    package func emptyCaches() {
        names = NameCache()
        posts.removeAll()
    }
}
