// SPDX-License-Identifier: Apache-2.0

import NotifyNames

/// The connections of a started program, and what each of them has yet to be notified of: a connection hears its names
/// by itself from the moment at which the bus accepted it, and that moment is known a little later.
struct LaunchObservers {
    private struct Observation {
        var subjects: Subjects
        /// Whether posts that come now may have been made before it was accepted: the bus has yet to say.
        var isJoining: Bool
        /// What it was notified of at its start.
        var told: Set<NotifyName> = []
        /// What was posted while it was joining.
        var late = PendingNames()
    }

    /// An observing connection of which it is not known yet whether it belongs to the program.
    private struct Candidate {
        var subjects: Subjects
        var isJoining: Bool
        /// What it is to be notified of if it does.
        var missed = PendingNames()
    }

    private var observations: [ConnectionID: Observation] = [:]
    private var candidates: [ConnectionID: Candidate] = [:]

    /// Whether the program hears a name by itself.
    func hear(_ name: NotifyName) -> Bool {
        observations.values.contains { $0.subjects.contains(name) && (!$0.isJoining || $0.told.contains(name)) }
    }

    /// Whether the program hears everything with this prefix by itself.
    func hear(_ prefix: NamePrefix) -> Bool {
        observations.values.contains { observation in
            !observation.isJoining
                && observation.subjects.prefixes.contains { prefix.string.utf8.starts(with: $0.string.utf8) }
        }
    }

    /// A name was posted that the program may not hear by itself.
    ///
    /// - Returns: whether a connection will be notified of it.
    mutating func note(_ name: NotifyName) -> Bool {
        for (connection, candidate) in candidates where candidate.isJoining && candidate.subjects.contains(name) {
            _ = candidates[connection]?.missed.insert(name)
        }
        var isLate = false
        for (connection, observation) in observations
        where observation.isJoining && observation.subjects.contains(name) {
            isLate = observations[connection]?.late.insert(name) == true || isLate
        }
        return isLate
    }

    /// A connection of the program observes these in total.
    ///
    /// - Parameters:
    ///   - isNew: whether the bus has just accepted it, so that it has heard nothing yet.
    ///   - missed: what was posted since the start was requested.
    ///   - due: what the program was to be started for: somebody else may have started it before that was posted.
    /// - Returns: what it is to be notified of.
    mutating func join(
        _ connection: ConnectionID,
        _ subjects: Subjects,
        isNew: Bool,
        missed: PendingNames,
        due: PendingNames
    ) -> [NotifyName] {
        let candidate = candidates.removeValue(forKey: connection)
        var all = candidate?.missed ?? missed
        if candidate == nil { for name in due.names { _ = all.insert(name) } }
        let names = all.names.filter(subjects.contains)
        var observation =
            observations[connection] ?? Observation(subjects: subjects, isJoining: candidate?.isJoining ?? isNew)
        observation.subjects = subjects
        if observation.isJoining { observation.told.formUnion(names) }
        observations[connection] = observation
        return names
    }

    /// A connection that may turn out to be the program's observes these in total.
    mutating func mayJoin(
        _ connection: ConnectionID,
        _ subjects: Subjects,
        isNew: Bool,
        missed: PendingNames,
        due: PendingNames
    ) {
        var candidate = candidates[connection] ?? Candidate(subjects: Subjects(), isJoining: isNew)
        for name in missed.names + due.names where subjects.contains(name) && !candidate.subjects.contains(name) {
            _ = candidate.missed.insert(name)
        }
        candidate.subjects = subjects
        candidates[connection] = candidate
    }

    /// The connections of the program are notified of these now.
    ///
    /// - Returns: those that each of them observes.
    mutating func tell(_ names: [NotifyName]) -> [(ConnectionID, [NotifyName])] {
        observations.keys.sorted { $0.number < $1.number }.compactMap { connection in
            guard let observation = observations[connection] else { return nil }
            let own = names.filter(observation.subjects.contains)
            if observation.isJoining { observations[connection]?.told.formUnion(own) }
            return own.isEmpty ? nil : (connection, own)
        }
    }

    /// Whether a connection of the program observes a name, even if it may not hear it yet.
    func observe(_ name: NotifyName) -> Bool { observations.values.contains { $0.subjects.contains(name) } }

    /// It is known which connections belong to the program: the others do not.
    mutating func dropCandidates() { candidates = [:] }

    /// All posts that come from now on were made while the connection heard them by itself.
    ///
    /// - Returns: what was posted in between.
    mutating func hasJoined(_ connection: ConnectionID) -> [NotifyName] {
        candidates[connection]?.isJoining = false
        guard var observation = observations[connection], observation.isJoining else { return [] }
        let names = observation.late.take()
        observation.isJoining = false
        observation.told = []
        observations[connection] = observation
        return names
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

    mutating func removeAll() { self = LaunchObservers() }
}
