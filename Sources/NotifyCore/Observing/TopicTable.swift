// SPDX-License-Identifier: Apache-2.0

/// Topics, found by the bytes of a name.
struct TopicTable {
    /// By the hash of the name; two names may share one.
    private var names: [UInt64: [Topic]] = [:]
    private(set) var prefixes: [Topic] = []
    private(set) var nameCount = 0

    var isEmpty: Bool { nameCount == 0 && prefixes.isEmpty }

    /// Adds an observer to a topic, making the topic if it is new.
    mutating func add(_ observer: Observer, to key: Topic.Key) -> (topic: Topic, isNew: Bool) {
        if let topic = find(key) {
            topic.observers.append(observer)
            return (topic, false)
        }
        let topic = Topic(key)
        topic.observers = [observer]
        switch key {
        case .name(let name):
            names[name.storage.hash, default: []].append(topic)
            nameCount += 1
        case .prefix:
            prefixes.append(topic)
        }
        return (topic, true)
    }

    /// Takes an observer off a topic, and the topic off the table when nobody is left.
    ///
    /// - Returns: whether the topic is gone.
    mutating func remove(_ observer: Observer, from topic: Topic) -> Bool {
        topic.observers.removeAll { $0 === observer }
        guard topic.observers.isEmpty else { return false }
        switch topic.key {
        case .name(let name):
            guard var bucket = names.removeValue(forKey: name.storage.hash) else { return false }
            let before = bucket.count
            bucket.removeAll { $0 === topic }
            nameCount -= before - bucket.count
            if !bucket.isEmpty { names[name.storage.hash] = bucket }
            return bucket.count < before
        case .prefix:
            let before = prefixes.count
            prefixes.removeAll { $0 === topic }
            return prefixes.count < before
        }
    }

    func topic(named bytes: UnsafeRawBufferPointer, hash: UInt64) -> Topic? {
        guard let bucket = names[hash] else { return nil }
        for topic in bucket {
            if case .name(let name) = topic.key, name.hasBytes(bytes) { return topic }
        }
        return nil
    }

    /// Everyone who wants a name. One who wants it twice over stands there once.
    func observers(of name: NotifyName) -> [Observer] {
        let exact = find(.name(name))?.observers ?? []
        return prefixes.isEmpty ? exact : addingPrefixObservers(of: name, to: exact)
    }

    func addingPrefixObservers(of name: NotifyName, to exact: [Observer]) -> [Observer] {
        var all = exact
        for topic in prefixes where topic.key.matches(name) {
            for observer in topic.observers where !all.contains(where: { $0 === observer }) {
                all.append(observer)
            }
        }
        return all
    }

    func forEach(_ body: (Topic) -> Void) {
        for bucket in names.values { bucket.forEach(body) }
        prefixes.forEach(body)
    }

    func find(_ key: Topic.Key) -> Topic? {
        switch key {
        case .name(let name):
            names[name.storage.hash]?.first { $0.key == key }
        case .prefix:
            prefixes.first { $0.key == key }
        }
    }
}
