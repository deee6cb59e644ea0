// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore
import NotifyNames

/// Asks a value that belongs to an object where it is. Otherwise the compiler copies all of a large value first, as it
/// does not know that `ask` leaves the object alone.
@inline(never)
private func inPlace<Value, Answer>(_ value: inout Value, _ ask: (inout Value) -> Answer) -> Answer { ask(&value) }

extension SimulatedObserver {
    var gate: ObserverLifecycle.Gate { inPlace(&lifecycle) { $0.gate } }
    var state: LifecycleState { inPlace(&lifecycle) { $0.state } }
    var isEntering: Bool { inPlace(&lifecycle) { $0.isEntering } }
    var holdsConfirmations: Bool { inPlace(&lifecycle) { $0.holdsConfirmations } }
    var agent: String? { inPlace(&lifecycle) { $0.agent } }
}

extension SimulatedAgent {
    func id(of name: String) -> ConnectionID? { inPlace(&coordinator) { $0.id(of: name) } }
    func name(of id: ConnectionID) -> String? { inPlace(&coordinator) { $0.name(of: id) } }
    func entry(of id: ConnectionID) -> Coordinator.Entry? { inPlace(&coordinator) { $0.entry(of: id) } }
    func receiver(ofStream id: ConnectionID) -> ConnectionID? { inPlace(&coordinator) { $0.receiver(ofStream: id) } }
    func isAsDecided(_ id: ConnectionID) -> Bool { inPlace(&coordinator) { $0.isAsDecided(id) } }
    func connections(of process: ProcessID) -> [ConnectionID] { inPlace(&coordinator) { $0.connections(of: process) } }
    var totals: Coordinator.Totals { inPlace(&coordinator) { $0.totals } }
    var isAtRest: Bool { inPlace(&coordinator) { $0.isAtRest } }
    var heritage: Heritage { inPlace(&coordinator) { $0.heritage } }
    var list: [Coordinator.Entry] { inPlace(&coordinator) { $0.list } }
}
