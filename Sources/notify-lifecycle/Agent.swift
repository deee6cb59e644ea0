// SPDX-License-Identifier: Apache-2.0

/// Where the agent is on a bus.
enum Agent {
    static let name = "org.notifybus.Agent1"
    static let path = "/org/notifybus/Agent1"
    static let interface = "org.notifybus.Agent1"
}
