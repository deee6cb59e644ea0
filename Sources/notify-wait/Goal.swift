// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// When the wait is over.
struct Goal {
    private enum Rest {
        case notifications(Int)
        case names(Set<NotifyName>)
        case prefixes([String])
        case never
    }

    private var rest: Rest

    init(_ subject: Subject, _ settings: WaitSettings) {
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

    /// Takes note of a notification. Returns whether it was the last one that was missing.
    mutating func isReached(by name: NotifyName) -> Bool {
        switch rest {
        case .never:
            return false
        case .notifications(let count):
            rest = .notifications(count - 1)
            return count == 1
        case .names(var names):
            rest = .never
            names.remove(name)
            rest = .names(names)
            return names.isEmpty
        case .prefixes(var prefixes):
            prefixes.removeAll { name.string.utf8.starts(with: $0.utf8) }
            rest = .prefixes(prefixes)
            return prefixes.isEmpty
        }
    }
}
