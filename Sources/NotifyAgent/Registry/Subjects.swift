// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// What a connection observes.
struct Subjects {
    /// As many names as may be pending; of prefixes each is looked at for each post.
    static let maximumNames = 65_536
    static let maximumPrefixes = 1_024

    var names: Set<NotifyName> = []
    var prefixes: Set<String> = []

    var isEmpty: Bool { names.isEmpty && prefixes.isEmpty }

    func contains(_ name: NotifyName) -> Bool {
        names.contains(name) || prefixes.contains { name.string.utf8.starts(with: $0.utf8) }
    }

    func subtracting(_ others: Subjects) -> Subjects {
        Subjects(names: names.subtracting(others.names), prefixes: prefixes.subtracting(others.prefixes))
    }

    func intersection(_ others: Subjects) -> Subjects {
        Subjects(names: names.intersection(others.names), prefixes: prefixes.intersection(others.prefixes))
    }

    mutating func formUnion(_ others: Subjects) {
        names.formUnion(others.names)
        prefixes.formUnion(others.prefixes)
    }

    /// Checks names and prefixes that came over the bus.
    init(names texts: [String], prefixes texts2: [String]) throws(BusFault) {
        guard texts.count <= Subjects.maximumNames, texts2.count <= Subjects.maximumPrefixes else {
            throw .invalidArguments(
                "At most \(Subjects.maximumNames) names and \(Subjects.maximumPrefixes) prefixes can be registered."
            )
        }
        for text in texts {
            do throws(NotifyBusError) {
                let name = try NotifyName(text)
                if !name.staysInProcess { names.insert(name) }
            } catch {
                throw .invalidArguments(error.description)
            }
        }
        for prefix in texts2 {
            guard prefix.utf8.count <= NotifyName.maximumLength else {
                throw .invalidArguments("A prefix has at most \(NotifyName.maximumLength) bytes.")
            }
            prefixes.insert(prefix)
        }
    }

    init(names: Set<NotifyName> = [], prefixes: Set<String> = []) {
        self.names = names
        self.prefixes = prefixes
    }
}
