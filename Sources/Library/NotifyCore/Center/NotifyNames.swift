// SPDX-License-Identifier: Apache-2.0

// Names and states, independent of the bus: the agent's coordinator depends on nothing else.
@_exported public import NotifyNames
@_exported public import NotifyProtocol
@_exported public import NotifyWire
