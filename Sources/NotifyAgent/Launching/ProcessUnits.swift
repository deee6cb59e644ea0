// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore

/// The innermost units of registered processes, while there are entries.
struct ProcessUnits {
    private let servesMachine: Bool
    /// Empty if it has none.
    private var units: [ProcessID: String] = [:]

    init(servesMachine: Bool) { self.servesMachine = servesMachine }

    /// The unit in which a process runs, if it is managed by the service manager of this bus.
    mutating func unit(of process: ProcessHandle) -> String? {
        guard Identity.permits(process.user, over: geteuid()) else { return nil }
        let id = ProcessID(process)
        if let known = units[id] { return known.isEmpty ? nil : known }
        let cgroups = process.read { $0.cgroups } ?? []
        let found = cgroups.lazy.compactMap { AppIdentity.unit(ofCgroup: $0) }.first
        let unit = found.flatMap { servesMachine && $0.isOfUser ? nil : $0.name }
        units[id] = unit ?? ""
        return unit
    }

    mutating func forget(_ process: ProcessID) { units[process] = nil }
    mutating func forgetAll() { units = [:] }
}
