// SPDX-License-Identifier: Apache-2.0

package import NotifyNames

// Holders without a connection: they want names, are notified that something is pending, and take it.
extension Coordinator {
    /// What was posted for a resident and not yet taken, in the order of the first posts.
    package func pendingNames(of id: ResidentID) -> [NotifyName] { residents[id]?.pending.names ?? [] }

    mutating func residentWants(_ id: ResidentID, _ subjects: Subjects, _ user: UInt32) {
        let old = residents[id]?.subjects ?? Subjects()
        ledger.observeLess(old, by: residents[id]?.user ?? user)
        do throws(Refusal) {
            try ledger.observe(subjects, by: user)
        } catch {
            // Whoever had them keeps the old ones.
            if let resident = residents[id] { try? ledger.observe(old, by: resident.user) }
            return emit(.residentIsHeld(id, failure: error.message))
        }
        observedNames.insert(subjects)
        observedNames.remove(old)
        var resident = residents[id] ?? Resident(id: id, user: user, subjects: subjects)
        resident.subjects = subjects
        residents[id] = resident
        forget(old.subtracting(subjects), of: id)
        holding.hold(subjects, for: .resident(id), of: user)
        followHolding()
    }

    /// It has used up what was pending: posts of these names are news again.
    mutating func residentTook(_ id: ResidentID) {
        guard residents[id] != nil else { return }
        takePending(of: id)
        holding.resubscribe(.resident(id))
        followHolding()
    }

    mutating func residentLeft(_ id: ResidentID) {
        guard let resident = residents[id] else { return }
        takePending(of: id)
        residents[id] = nil
        ledger.observeLess(resident.subjects, by: resident.user)
        observedNames.remove(resident.subjects)
        nameStates.forget(resident.subjects.names) { observedNames.containsExactly($0) }
        holding.releaseAll(for: .resident(id))
        followHolding()
    }

    /// A resident no longer wants these, which has already been noted.
    private mutating func forget(_ removed: Subjects, of id: ResidentID) {
        guard !removed.isEmpty else { return }
        holding.release(removed, for: .resident(id))
        followHolding()
        nameStates.forget(removed.names) { observedNames.containsExactly($0) }
        dropPending(of: .resident(id))
    }

    private mutating func takePending(of id: ResidentID) {
        guard let user = residents[id]?.user, let names = residents[id]?.pending.take() else { return }
        ledger.forgetPending(names, of: user)
    }

    /// Its names are held, or this prevented it.
    mutating func residentIsHeld(_ id: ResidentID, _ failure: String?) {
        guard residents[id] != nil else { return }
        if failure == nil { residents[id]?.isCollecting = true }
        emit(.residentIsHeld(id, failure: failure))
    }
}
