// SPDX-License-Identifier: Apache-2.0

/// Topics, looked up by the bytes of a name.
struct TopicTable {
    /// By the hash of the wire format: the first name with that hash.
    private var names = ObjectTable<Topic>()
    /// The others, by a hash that outsiders can't predict. Only names that were constructed to collide get here.
    private var collisions: [Int: [Topic]] = [:]
    private(set) var prefixes: [Topic] = []
    private(set) var nameCount = 0

    var isEmpty: Bool { nameCount == 0 && prefixes.isEmpty }

    /// Adds an observer to a topic, creating the topic if it is new.
    mutating func add(_ observer: Observer, to key: Topic.Key) -> (topic: Topic, isNew: Bool) {
        if let topic = find(key) {
            topic.changeAudience { $0.add(observer) }
            return (topic, false)
        }
        let topic = Topic(key)
        topic.changeAudience { $0.add(observer) }
        switch key {
        case .name(let name):
            if names[name.storage.hash] == nil {
                names.set(topic, for: name.storage.hash)
            } else {
                collisions[TopicTable.seededHash(of: name), default: []].append(topic)
            }
            nameCount += 1
        case .prefix:
            prefixes.append(topic)
        }
        return (topic, true)
    }

    /// Removes an observer from a topic, and the topic from the table when nobody is left.
    ///
    /// - Returns: whether the topic is gone.
    mutating func remove(_ observer: Observer, from topic: Topic) -> Bool {
        topic.changeAudience { $0.remove(observer) }
        guard topic.audience.isEmpty else { return false }
        switch topic.key {
        case .name(let name):
            if names[name.storage.hash] === topic {
                names.remove(name.storage.hash)
            } else {
                let hash = TopicTable.seededHash(of: name)
                guard var bucket = collisions.removeValue(forKey: hash) else { return false }
                let before = bucket.count
                bucket.removeAll { $0 === topic }
                if !bucket.isEmpty { collisions[hash] = bucket }
                guard bucket.count < before else { return false }
            }
            nameCount -= 1
            return true
        case .prefix:
            let before = prefixes.count
            prefixes.removeAll { $0 === topic }
            return prefixes.count < before
        }
    }

    func topic(named bytes: UnsafeRawBufferPointer, hash: UInt64) -> Topic? {
        if let first = names[hash], first.name?.hasBytes(bytes) == true { return first }
        guard !collisions.isEmpty else { return nil }
        return collisions[TopicTable.seededHash(of: bytes)]?.first { $0.name?.hasBytes(bytes) == true }
    }

    private static func seededHash(of name: NotifyName) -> Int {
        var hasher = Hasher()
        name.hash(into: &hasher)
        return hasher.finalize()
    }

    /// The same for its bytes.
    static func seededHash(of bytes: UnsafeRawBufferPointer) -> Int {
        var hasher = Hasher()
        hasher.combine(bytes: bytes)
        return hasher.finalize()
    }

    /// All observers of a name. One that observes it twice over appears once.
    func audience(of name: NotifyName) -> Audience {
        let exact = topic(of: name)?.audience ?? Audience()
        return prefixes.isEmpty ? exact : addingPrefixObservers(of: name, to: exact)
    }

    func addingPrefixObservers(of name: NotifyName, to exact: Audience) -> Audience {
        var all = exact
        for topic in prefixes where topic.key.matches(name) {
            for observer in topic.audience.observers where !all.contains(observer) { all.add(observer) }
        }
        return all
    }

    func forEach(_ body: (Topic) -> Void) {
        names.forEach(body)
        for bucket in collisions.values { bucket.forEach(body) }
        prefixes.forEach(body)
    }

    func find(_ key: Topic.Key) -> Topic? {
        switch key {
        case .name(let name): topic(of: name)
        case .prefix: prefixes.first { $0.key == key }
        }
    }

    private func topic(of name: NotifyName) -> Topic? {
        if let first = names[name.storage.hash], first.name == name { return first }
        if collisions.isEmpty { return nil }
        return collisions[TopicTable.seededHash(of: name)]?.first { $0.name == name }
    }
}
