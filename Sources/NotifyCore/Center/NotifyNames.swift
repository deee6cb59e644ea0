// SPDX-License-Identifier: Apache-2.0

// Names and states, independent of the bus: the agent's coordinator depends on nothing else.
@_exported public import NotifyNames

extension NotifyCenter {
    /// What a program's observers receive.
    public typealias LifecycleState = NotifyNames.LifecycleState
}
@_exported public import NotifyWire
@_exported public import NotifyProtocol
