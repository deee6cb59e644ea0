// SPDX-License-Identifier: Apache-2.0

package import NotifyNames

/// Values by name and by prefix: who observes what, or how many do.
package struct SubjectIndex<Value> {
    private var names: [NotifyName: Value] = [:]
    private var byPrefix = PrefixIndex<Value>()

    package init() {}

    /// How many names and prefixes have a value.
    package var count: Int { names.count + byPrefix.count }
    package var hasPrefixes: Bool { !byPrefix.isEmpty }

    package subscript(name: NotifyName) -> Value? { names[name] }
    package subscript(prefix: NamePrefix) -> Value? { byPrefix[prefix] }

    /// The values of all prefixes of a name, the shortest prefix first.
    package func forEachPrefix(of name: NotifyName, _ body: (NamePrefix, Value) -> Void) {
        byPrefix.forEachPrefix(of: name, body)
    }

    /// Makes room for many more names at once.
    private mutating func reserve(_ count: Int) {
        if count > names.count { names.reserveCapacity(names.count + count) }
    }

    /// Changes the value of each subject in its place; nil removes it.
    ///
    /// - Returns: the subjects for which `change` returned true.
    private mutating func change(_ subjects: Subjects, _ change: (inout Value?) -> Bool) -> Subjects {
        var changed = Subjects()
        for name in subjects.names where change(&names[name]) { changed.names.insert(name) }
        for prefix in subjects.prefixes where byPrefix.change(prefix, change) { changed.prefixes.insert(prefix) }
        compact()
        return changed
    }

    /// Changes the value of each subject in its place, as above, and does not say which: a set of as many names takes as long to
    /// make as the rest.
    private mutating func changeAll(_ subjects: Subjects, _ change: (inout Value?) -> Void) {
        for name in subjects.names { change(&names[name]) }
        for prefix in subjects.prefixes { byPrefix.change(prefix, change) }
        compact()
    }

    /// Releases memory that is no longer needed.
    private mutating func compact() {
        if names.isEmpty {
            names = [:]
        } else if names.capacity > 4 * names.count + 64 {
            names = names.filter { _ in true }
        }
    }
}

extension SubjectIndex: Sendable where Value: Sendable {}
extension SubjectIndex: Equatable where Value: Equatable {}
extension SubjectIndex: Hashable where Value: Hashable {}

extension SubjectIndex<Int> {
    /// Counts each of these once more.
    ///
    /// - Returns: those that were not counted before.
    @discardableResult
    package mutating func insert(_ subjects: Subjects) -> Subjects {
        change(subjects) { count in
            defer { count = (count ?? 0) + 1 }
            return count == nil
        }
    }

    /// Counts each of these once less, as far as they are counted.
    ///
    /// - Returns: those that are no longer counted.
    @discardableResult
    package mutating func remove(_ subjects: Subjects) -> Subjects {
        change(subjects) { count in
            guard let before = count else { return false }
            count = before > 1 ? before - 1 : nil
            return count == nil
        }
    }
}

extension SubjectIndex<Int> {
    /// Counts each of these once more.
    mutating func count(_ subjects: Subjects) {
        reserve(subjects.names.count)
        changeAll(subjects) { $0 = ($0 ?? 0) + 1 }
    }

    /// Counts each of these once less, as far as they are counted.
    mutating func uncount(_ subjects: Subjects) {
        changeAll(subjects) { count in
            if let before = count { count = before > 1 ? before - 1 : nil }
        }
    }
}

extension SubjectIndex {
    /// Adds a member to the set of each of these.
    ///
    /// - Returns: those that had no member before.
    package mutating func insert<Member>(_ member: Member, for subjects: Subjects) -> Subjects
    where Value == Set<Member> {
        change(subjects) { members in
            defer { members = members ?? [member] }
            return members?.insert(member) == nil
        }
    }

    /// Removes a member from the set of each of these.
    ///
    /// - Returns: those that no longer have a member.
    package mutating func remove<Member>(_ member: Member, for subjects: Subjects) -> Subjects
    where Value == Set<Member> {
        change(subjects) { members in
            guard members?.remove(member) != nil, members?.isEmpty == true else { return false }
            members = nil
            return true
        }
    }
}
