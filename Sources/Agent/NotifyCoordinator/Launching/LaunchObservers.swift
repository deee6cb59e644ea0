// SPDX-License-Identifier: Apache-2.0

import NotifyNames

/// A point in the stream of posts: behind it, a connection hears by itself the names that it has registered so far.
package struct LaunchMark: Hashable, Sendable {
    package let connection: ConnectionID
    /// Later ones have higher numbers.
    package let number: UInt64

    package init(_ connection: ConnectionID, number: UInt64) { (self.connection, self.number) = (connection, number) }
}

/// The connections of a started program, and what each of them has yet to be notified of: a connection hears a name by
/// itself from the moment at which the bus had its rule, and that moment is known a little later.
struct LaunchObservers: Hashable {
    /// What a connection observes.
    private struct Hearing: Hashable {
        private(set) var subjects = Subjects()
        /// Those of which it hears by itself every post that comes from now on.
        private(set) var heard = Subjects()
        /// Posts that come before this mark may have been made before the bus had its rules for the others.
        private var mark: UInt64?

        var isJoining: Bool { mark != nil }

        /// It observes these in total.
        mutating func observe(_ new: Subjects, behind mark: UInt64?) {
            subjects = new
            if let mark {
                // Nothing was removed.
                self.mark = mark
            } else {
                heard = self.mark == nil ? new : heard.intersection(new)
            }
        }

        /// - Returns: whether it hears everything by itself since.
        mutating func pass(_ number: UInt64) -> Bool {
            guard let mark, mark <= number else { return false }
            self.mark = nil
            heard = subjects
            return true
        }

        /// Whether a post that comes now may have been made before it heard the name by itself.
        func mayHaveMissed(_ name: NotifyName) -> Bool {
            isJoining && subjects.contains(name) && !heard.contains(name)
        }
    }

    private struct Observation: Hashable {
        var hearing = Hearing()
        /// What it was notified of since it began to join.
        var told: Set<NotifyName> = []
        /// What was posted while it was joining.
        var late = PendingNames()

        func hears(_ name: NotifyName) -> Bool {
            hearing.heard.contains(name) || told.contains(name) && hearing.subjects.contains(name)
        }
    }

    /// An observing connection of which it is not known yet whether it belongs to the program.
    private struct Candidate: Hashable {
        var hearing = Hearing()
        /// What it is to be notified of if it does.
        var missed = PendingNames()
    }

    private var observations: [ConnectionID: Observation] = [:]
    private var candidates: [ConnectionID: Candidate] = [:]

    /// Whether the program hears a name by itself.
    func hear(_ name: NotifyName) -> Bool { observations.values.contains { $0.hears(name) } }

    /// Whether the program hears everything with this prefix by itself.
    func hear(_ prefix: NamePrefix) -> Bool {
        observations.values.contains { observation in
            observation.hearing.heard.prefixes.contains { prefix.string.utf8.starts(with: $0.string.utf8) }
        }
    }

    /// A name was posted that the program may not hear by itself.
    ///
    /// - Returns: whether a connection will be notified of it.
    mutating func note(_ name: NotifyName) -> Bool {
        // In place: the waiting names must not be copied for each post.
        for connection in Array(candidates.keys) where candidates[connection]?.hearing.mayHaveMissed(name) == true {
            _ = candidates[connection]?.missed.insert(name)
        }
        var isLate = false
        for connection in Array(observations.keys) where observations[connection]?.hearing.mayHaveMissed(name) == true {
            isLate = observations[connection]?.late.insert(name) == true || isLate
        }
        return isLate
    }

    /// A connection of the program observes these in total.
    ///
    /// - Parameters:
    ///   - mark: behind which it hears them by itself; nil if it does so already.
    ///   - missed: what was posted since the start was requested.
    ///   - due: what the program was to be started for: another client may have started it before that was posted.
    /// - Returns: what it is to be notified of.
    mutating func join(
        _ connection: ConnectionID,
        _ subjects: Subjects,
        behind mark: UInt64?,
        missed: PendingNames,
        due: PendingNames
    ) -> [NotifyName] {
        let candidate = candidates.removeValue(forKey: connection)
        var all = candidate?.missed ?? missed
        if candidate == nil { for name in due.names { _ = all.insert(name) } }
        let names = all.names.filter(subjects.contains)
        var observation = observations[connection] ?? Observation(hearing: candidate?.hearing ?? Hearing())
        observation.hearing.observe(subjects, behind: mark)
        if observation.hearing.isJoining { observation.told.formUnion(names) }
        observations[connection] = observation
        return names
    }

    /// A connection that may turn out to be the program's observes these in total.
    mutating func mayJoin(
        _ connection: ConnectionID,
        _ subjects: Subjects,
        behind mark: UInt64?,
        missed: PendingNames,
        due: PendingNames
    ) {
        var candidate = candidates[connection] ?? Candidate()
        let known = candidate.hearing.subjects
        for name in missed.names + due.names where subjects.contains(name) && !known.contains(name) {
            _ = candidate.missed.insert(name)
        }
        candidate.hearing.observe(subjects, behind: mark)
        candidates[connection] = candidate
    }

    /// The connections of the program are notified of these now.
    ///
    /// - Returns: those that each of them observes.
    mutating func tell(_ names: [NotifyName]) -> [(ConnectionID, [NotifyName])] {
        observations.keys.sorted { $0.number < $1.number }.compactMap { connection in
            guard let observation = observations[connection] else { return nil }
            let own = names.filter(observation.hearing.subjects.contains)
            if observation.hearing.isJoining { observations[connection]?.told.formUnion(own) }
            return own.isEmpty ? nil : (connection, own)
        }
    }

    /// Whether a connection of the program observes a name, even if it may not hear it yet.
    func observe(_ name: NotifyName) -> Bool { observations.values.contains { $0.hearing.subjects.contains(name) } }

    /// It is known which connections belong to the program: the others do not.
    mutating func dropCandidates() { candidates = [:] }

    /// All posts that come from now on were made behind the mark.
    ///
    /// - Returns: what was posted in between.
    mutating func pass(_ mark: LaunchMark) -> [NotifyName] {
        _ = candidates[mark.connection]?.hearing.pass(mark.number)
        guard observations[mark.connection]?.hearing.pass(mark.number) == true else { return [] }
        observations[mark.connection]?.told = []
        return observations[mark.connection]?.late.take() ?? []
    }

    /// - Returns: what it was to be notified of; nil if it did not belong to the program.
    mutating func leave(_ connection: ConnectionID) -> [NotifyName]? {
        candidates[connection] = nil
        guard var observation = observations.removeValue(forKey: connection) else { return nil }
        return observation.late.take().filter { !hear($0) }
    }

    /// - Returns: what connections of the program are yet to be notified of, which they no longer are.
    mutating func takeLate() -> [NotifyName] {
        observations.keys.sorted { $0.number < $1.number }.flatMap { observations[$0]?.late.take() ?? [] }
    }

    /// The program has exited. Any that may turn out to belong to the one being started stay.
    ///
    /// - Returns: what they were to be notified of.
    mutating func dropMembers() -> [NotifyName] {
        defer { observations = [:] }
        return takeLate()
    }

    /// Only these connections belong to the program.
    ///
    /// - Returns: what the others were to be notified of.
    mutating func dropMembers(except members: Set<ConnectionID>) -> [NotifyName] {
        observations.keys.filter { !members.contains($0) }.sorted().flatMap { leave($0) ?? [] }
    }

    mutating func removeAll() { self = LaunchObservers() }
}
