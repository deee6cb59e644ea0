// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore

/// The owners of the well-known names that entries activate.
final class NameWatch {
    enum Change {
        /// The name has an owner, or has none any more.
        case owned(Bool)
        /// The process of the owner is known, or can't be determined.
        case processIsKnown
    }

    private final class Entry: ServiceClient {
        let service: FollowedService
        private(set) var process: Int32 = 0
        private let link: BusLink
        private let report: (Change) -> Void

        init(_ name: String, _ link: BusLink, _ report: @escaping (Change) -> Void) {
            service = FollowedService(name: name, title: name, signals: [])
            (self.link, self.report) = (link, report)
        }

        func serviceHasCome(_ service: Service) {
            process = 0
            report(.owned(true))
            link.callBus("GetConnectionUnixProcessID", [.string(service.owner)]) { [self] answer in
                guard service.isThere else { return }
                if case .success(let values) = answer, let pid = values.first?.uint32 {
                    process = Int32(truncatingIfNeeded: pid)
                }
                report(.processIsKnown)
            }
        }

        func serviceIsAway(_ reason: String) {
            process = 0
            report(.owned(false))
        }

        func handle(_ signal: BusSignal) {}
    }

    private let link: BusLink
    private let bus: any ServiceBus
    private var entries: [LaunchID: Entry] = [:]

    init(_ link: BusLink, on bus: any ServiceBus) { (self.link, self.bus) = (link, bus) }

    /// The process that owns the name of an entry; nil if there is none.
    func owner(of id: LaunchID) -> Int32? { entries[id].flatMap { $0.process > 0 ? $0.process : nil } }

    func attach(_ id: LaunchID, _ name: String, _ report: @escaping (Change) -> Void) {
        let entry = Entry(name, link, report)
        entries[id] = entry
        bus.add(entry)
    }

    func detach(_ id: LaunchID) {
        if let entry = entries.removeValue(forKey: id) { bus.remove(entry) }
    }
}
