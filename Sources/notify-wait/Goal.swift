// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// Determines when the wait is over.
struct Goal {
    private enum Rest {
        case notifications(Int)
        case names(Set<NotifyName>)
        case prefixes([String])
        case never
    }

    private let subject: Subject
    private var rest: Rest

    init(_ subject: Subject, _ settings: WaitSettings) {
        self.subject = subject
        if settings.follows {
            rest = .never
        } else if !settings.wantsAll {
            rest = .notifications(settings.count ?? 1)
        } else {
            switch subject {
            case .names(let names): rest = .names(Set(names))
            case .prefixes(let prefixes): rest = .prefixes(prefixes)
            }
        }
    }

    /// Records what has come. Returns whether nothing is missing any more.
    mutating func isReached(by burst: Burst) -> Bool {
        switch rest {
        case .never:
            return false
        case .notifications(let count):
            rest = .notifications(count - 1)
            return count == 1
        case .names(var names):
            rest = .never
            for entry in burst.entries { names.remove(entry.arrival.name) }
            rest = .names(names)
            return names.isEmpty
        case .prefixes(var prefixes):
            prefixes.removeAll { prefix in
                burst.entries.contains { $0.arrival.name.string.utf8.starts(with: prefix.utf8) }
            }
            rest = .prefixes(prefixes)
            return prefixes.isEmpty
        }
    }

    /// What is still missing, for the end of a sentence; nil if nothing in particular is required.
    var missing: String? {
        let all: [String]
        switch rest {
        case .notifications, .never: return nil
        case .names(let names): all = subject.names.filter { names.contains($0) }.map(\.string)
        case .prefixes(let prefixes): all = prefixes.map { $0 + "*" }
        }
        let shown = all.prefix(Goal.shownNames).joined(separator: ", ")
        return all.count > Goal.shownNames ? shown + " and \(all.count - Goal.shownNames) more" : shown
    }

    /// More would hide the rest of the sentence.
    private static let shownNames = 10
}
