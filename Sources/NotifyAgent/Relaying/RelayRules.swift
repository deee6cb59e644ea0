// SPDX-License-Identifier: Apache-2.0

package import NotifyNames

/// What sandboxed programs may hear through the relay: everything, unless the configuration limits their application.
package struct RelayRules: Equatable, Sendable {
    /// The prefixes of the names that an application may hear, by its id.
    package var limits: [String: Set<NamePrefix>] = [:]

    package init() {}

    /// Something that an application may not observe; nil if it may observe all of it.
    package func forbidden(_ subjects: Subjects, to application: String) -> String? {
        guard let allowed = limits[application] else { return nil }
        func isAllowed(_ text: String) -> Bool { allowed.contains { text.utf8.starts(with: $0.string.utf8) } }
        return subjects.names.first { !isAllowed($0.string) }?.string
            ?? subjects.prefixes.first { !isAllowed($0.string) }?.string
    }
}
