// SPDX-License-Identifier: Apache-2.0

/// What the lifecycle agent and its observers are called on the bus. See Documentation/lifecycle-protocol.md.
package enum AgentNames {
    package static let agent = "org.notifybus.Agent1"
    package static let agentPath = "/org/notifybus/Agent1"
    package static let observer = "org.notifybus.Observer1"
    package static let observerPath = "/org/notifybus/Observer1"
}
