// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// Determines when the wait is over.
struct Goal {
    private enum Rest {
        case notifications(Int)
        case items(names: Set<NotifyName>, prefixes: Set<NamePrefix>)
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
            rest = .items(names: Set(subject.names), prefixes: Set(subject.prefixes))
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
        case .items(var names, var prefixes):
            // Not copied while it is changed.
            rest = .never
            for entry in burst.entries {
                let name = entry.arrival.name
                names.remove(name)
                if !prefixes.isEmpty { prefixes = prefixes.filter { !$0.begins(name) } }
            }
            rest = .items(names: names, prefixes: prefixes)
            return names.isEmpty && prefixes.isEmpty
        }
    }

    /// What is still missing, for the end of a sentence; nil if nothing in particular is required.
    var missing: String? {
        let all: [String]
        switch rest {
        case .notifications, .never: return nil
        case .items(let names, let prefixes):
            all = subject.items.filter { item in
                switch item {
                case .name(let name): names.contains(name)
                case .prefix(let prefix): prefixes.contains(prefix)
                }
            }.map(\.text)
        }
        let shown = all.prefix(Goal.shownNames).joined(separator: ", ")
        return all.count > Goal.shownNames ? shown + " and \(all.count - Goal.shownNames) more" : shown
    }

    /// More would hide the rest of the sentence.
    private static let shownNames = 10
}
