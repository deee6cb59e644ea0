// SPDX-License-Identifier: Apache-2.0

extension BusLink {
    /// The unique name of the connection.
    package var uniqueName: String { observing.uniqueName }

    /// What is observed over this connection.
    var registeredNames: (names: [String], prefixes: [String]) {
        var names: [String] = []
        var prefixes: [String] = []
        engine.registry.settle { topics in
            topics.forEach { topic in
                switch topic.key {
                case .name(let name): names.append(name.string)
                case .prefix(let prefix): prefixes.append(prefix)
                }
            }
        }
        return (names, prefixes)
    }
}
