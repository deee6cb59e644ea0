// SPDX-License-Identifier: Apache-2.0

// What names and states are, without the bus: the agent's coordinator stands on it alone.
@_exported public import NotifyNames

extension NotifyCenter {
    /// What a program's observers get.
    public typealias LifecycleState = NotifyNames.LifecycleState
}
