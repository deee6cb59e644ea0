// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore

/// The owners of the well-known names that entries activate.
///
/// `@unchecked Sendable`, like everything that belongs to the agent: only the reading thread touches it.
final class NameWatch: @unchecked Sendable {
    private struct Entry {
        let name: String
        let report: @Sendable (Change, borrowing BusLink) -> Void
        var owner = ""
        var process: Int32 = 0
    }

    enum Change {
        /// Somebody owns the name, or nobody does any more.
        case owned(Bool)
        /// The process of the owner is known, or can't be determined.
        case processIsKnown
    }

    private var entries: [LaunchID: Entry] = [:]

    /// The process that owns the name of an entry; nil if there is none.
    func owner(of id: LaunchID) -> Int32? { entries[id].flatMap { $0.process > 0 ? $0.process : nil } }

    func attach(
        _ id: LaunchID,
        _ name: String,
        on link: borrowing BusLink,
        _ report: @escaping @Sendable (Change, borrowing BusLink) -> Void
    ) {
        entries[id] = Entry(name: name, report: report)
        link.callBus("AddMatch", [.string(NameWatch.rule(name))])
        link.findOwner(of: name) { [self] answer, link in
            ownerIs((try? answer.get()) ?? "", of: id, on: link)
        }
    }

    func detach(_ id: LaunchID, on link: borrowing BusLink) {
        guard let entry = entries.removeValue(forKey: id) else { return }
        link.callBus("RemoveMatch", [.string(NameWatch.rule(entry.name))])
    }

    func handle(_ signal: BusSignal, on link: borrowing BusLink) {
        let texts = signal.arguments.compactMap(\.string)
        guard signal.sender == "org.freedesktop.DBus", signal.member == "NameOwnerChanged", texts.count == 3 else {
            return
        }
        for id in entries.keys.sorted() where entries[id]?.name == texts[0] { ownerIs(texts[2], of: id, on: link) }
    }

    private func ownerIs(_ owner: String, of id: LaunchID, on link: borrowing BusLink) {
        guard let entry = entries[id] else { return }
        entries[id]?.owner = owner
        entries[id]?.process = 0
        entry.report(.owned(!owner.isEmpty), link)
        if owner.isEmpty { return }
        link.callBus("GetConnectionUnixProcessID", [.string(owner)]) { [self] answer, link in
            guard entries[id]?.owner == owner else { return }
            if case .success(let values) = answer, let pid = values.first?.uint32 {
                entries[id]?.process = Int32(truncatingIfNeeded: pid)
            }
            entry.report(.processIsKnown, link)
        }
    }

    private static func rule(_ name: String) -> String {
        "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',"
            + "arg0='\(name)'"
    }
}
