// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore

/// The owners of the well-known names that entries activate.
final class NameWatch {
    private struct Entry {
        let name: String
        let report: (Change) -> Void
        var owner = ""
        var process: Int32 = 0
    }

    enum Change {
        /// Somebody owns the name, or nobody does any more.
        case owned(Bool)
        /// The process of the owner is known, or can't be determined.
        case processIsKnown
    }

    private let link: BusLink
    private var entries: [LaunchID: Entry] = [:]

    init(_ link: BusLink) { self.link = link }

    /// The process that owns the name of an entry; nil if there is none.
    func owner(of id: LaunchID) -> Int32? { entries[id].flatMap { $0.process > 0 ? $0.process : nil } }

    func attach(
        _ id: LaunchID,
        _ name: String,
        _ report: @escaping (Change) -> Void
    ) {
        entries[id] = Entry(name: name, report: report)
        link.callBus("AddMatch", [.string(OwnerChange.rule(of: name))])
        link.findOwner(of: name) { [self] answer in
            ownerIs((try? answer.get()) ?? "", of: id)
        }
    }

    func detach(_ id: LaunchID) {
        guard let entry = entries.removeValue(forKey: id) else { return }
        link.callBus("RemoveMatch", [.string(OwnerChange.rule(of: entry.name))])
    }

    func handle(_ signal: BusSignal) {
        guard let change = OwnerChange(signal) else { return }
        for id in entries.keys.sorted() where entries[id]?.name == change.name { ownerIs(change.owner, of: id) }
    }

    private func ownerIs(_ owner: String, of id: LaunchID) {
        guard let entry = entries[id] else { return }
        entries[id]?.owner = owner
        entries[id]?.process = 0
        entry.report(.owned(!owner.isEmpty))
        if owner.isEmpty { return }
        link.callBus("GetConnectionUnixProcessID", [.string(owner)]) { [self] answer in
            guard entries[id]?.owner == owner else { return }
            if case .success(let values) = answer, let pid = values.first?.uint32 {
                entries[id]?.process = Int32(truncatingIfNeeded: pid)
            }
            entry.report(.processIsKnown)
        }
    }
}
