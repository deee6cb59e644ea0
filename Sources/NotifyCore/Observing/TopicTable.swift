// SPDX-License-Identifier: Apache-2.0

/// Topics, found by the bytes of a name.
struct TopicTable {
    /// By the hash of the wire, which is at hand for each post: the first name that has it.
    private var names: [UInt64: Topic] = [:]
    /// The others, by a hash that nobody outside can foresee. Only names that were made to share one get here.
    private var collisions: [Int: [Topic]] = [:]
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
            if names[name.storage.hash] == nil {
                names[name.storage.hash] = topic
            } else {
                collisions[TopicTable.seededHash(of: name), default: []].append(topic)
            }
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
            if names[name.storage.hash] === topic {
                names[name.storage.hash] = nil
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
        if let first = names[hash], case .name(let name) = first.key, name.hasBytes(bytes) { return first }
        guard !collisions.isEmpty else { return nil }
        return collisions[TopicTable.seededHash(of: bytes)]?.first { topic in
            if case .name(let name) = topic.key { name.hasBytes(bytes) } else { false }
        }
    }

    private static func seededHash(of name: NotifyName) -> Int {
        var hasher = Hasher()
        name.hash(into: &hasher)
        return hasher.finalize()
    }

    /// The same of its bytes.
    static func seededHash(of bytes: UnsafeRawBufferPointer) -> Int {
        var hasher = Hasher()
        hasher.combine(bytes: bytes)
        return hasher.finalize()
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
        names.values.forEach(body)
        for bucket in collisions.values { bucket.forEach(body) }
        prefixes.forEach(body)
    }

    func find(_ key: Topic.Key) -> Topic? {
        switch key {
        case .name(let name):
            if let first = names[name.storage.hash], first.key == key {
                first
            } else if collisions.isEmpty {
                nil
            } else {
                collisions[TopicTable.seededHash(of: name)]?.first { $0.key == key }
            }
        case .prefix:
            prefixes.first { $0.key == key }
        }
    }
}
