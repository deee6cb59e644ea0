// SPDX-License-Identifier: Apache-2.0

/// Where `self.` names are posted and observed: within the process, without a bus, whichever center is used.
enum ProcessHub {
    private static let topics = Monitor(TopicTable())

    static func add(_ observer: Observer, to keys: [Topic.Key]) -> [Topic] {
        topics.withLock { topics in keys.map { topics.add(observer, to: $0).topic } }
    }

    static func remove(_ observer: Observer, from hubTopics: [Topic]) {
        topics.withLock { topics in
            for topic in hubTopics { _ = topics.remove(observer, from: topic) }
        }
    }

    /// - Parameter poster: the counters shared by the posting center and its observers, which identify the center.
    static func post(_ name: NotifyName, by poster: Counters) {
        // Delivered with the lock held, so that two posts by one thread reach every observer in order.
        topics.withLock { topics in
            let audience = topics.audience(of: name)
            for observer in audience.observers where !(observer.ignoresOwnPosts && observer.counters === poster) {
                observer.offer(name)
            }
        }
    }

    /// Whether observers of a prefix can hear names of this process.
    static func canMatch(prefix: NamePrefix) -> Bool {
        let processPrefix = NotifyName.Scope.processPrefix
        return prefix.string.utf8.starts(with: processPrefix.utf8)
            || processPrefix.utf8.starts(with: prefix.string.utf8)
    }

    /// Whether observers of a prefix can hear nothing but names of this process.
    static func containsAll(ofPrefix prefix: NamePrefix) -> Bool {
        prefix.staysInProcess
    }
}
