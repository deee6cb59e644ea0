// SPDX-License-Identifier: Apache-2.0

/// The subjects of an observer: names, and prefixes of names.
package struct Subjects: Hashable, Sendable {
    /// As many names as may be pending; every prefix must be compared with each post.
    package static let maximumNames = 65_536
    package static let maximumPrefixes = 1_024

    package var names: Set<NotifyName> = []
    package var prefixes: Set<NamePrefix> = []

    package var isEmpty: Bool { names.isEmpty && prefixes.isEmpty }

    package func contains(_ name: NotifyName) -> Bool {
        names.contains(name) || prefixes.contains { $0.begins(name) }
    }

    /// Takes time by the number of these, however many others there are.
    package func subtracting(_ others: Subjects) -> Subjects {
        Subjects(
            names: names.filter { !others.names.contains($0) },
            prefixes: prefixes.filter { !others.prefixes.contains($0) }
        )
    }

    /// Takes time by the number of these, however many others there are.
    package func intersection(_ others: Subjects) -> Subjects {
        Subjects(names: names.filter(others.names.contains), prefixes: prefixes.filter(others.prefixes.contains))
    }

    /// Takes time by the number of the others.
    package mutating func subtract(_ others: Subjects) {
        for name in others.names { names.remove(name) }
        for prefix in others.prefixes { prefixes.remove(prefix) }
    }

    package func union(_ others: Subjects) -> Subjects {
        Subjects(names: names.union(others.names), prefixes: prefixes.union(others.prefixes))
    }

    /// Takes time by the number of the others.
    package mutating func formUnion(_ others: Subjects) {
        names.formUnion(others.names)
        prefixes.formUnion(others.prefixes)
    }

    /// Checks names and prefixes received over the bus.
    ///
    /// - Throws: `limitExceeded` or `invalidName`.
    package init(names texts: [String], prefixes texts2: [String]) throws(NotifyBusError) {
        guard texts.count <= Subjects.maximumNames, texts2.count <= Subjects.maximumPrefixes else {
            throw NotifyBusError(
                .limitExceeded,
                "At most \(Subjects.maximumNames) names and \(Subjects.maximumPrefixes) prefixes can be registered."
            )
        }
        for text in texts {
            let name = try NotifyName(text)
            if !name.staysInProcess { names.insert(name) }
        }
        for prefix in texts2 {
            guard prefix.utf8.count <= NotifyName.maximumLength else {
                throw NotifyBusError(.invalidName, "A prefix has at most \(NotifyName.maximumLength) bytes.")
            }
            prefixes.insert(NamePrefix(prefix))
        }
    }

    package init(names: Set<NotifyName> = [], prefixes: Set<NamePrefix> = []) {
        self.names = names
        self.prefixes = prefixes
    }
}
