// SPDX-License-Identifier: Apache-2.0

extension NotifyCenter {
    /// Whose posts the observers of a center can hear. More kinds may be added.
    public struct Visibility: Hashable, Sendable, CustomStringConvertible {
        private let name: String

        /// Those of every program on the bus.
        public static let everyone = Visibility(name: "everyone")
        /// Only what this program tells itself, by names that begin with `self.`, because its sandbox lets no other post
        /// in.
        public static let ownProgram = Visibility(name: "ownProgram")

        /// The name of the kind, for logs.
        public var description: String { name }
    }

    /// Whose posts the observers of this center can hear.
    ///
    /// In a Flatpak a proxy stands between the program and the bus, and lets nobody's posts in, not even the program's
    /// own, which come from another connection. With the permission `--talk-name=org.notifybus.Relay1` the agent's relay
    /// hears for the program, and the answer is ``Visibility/everyone``; so it is with access to the whole bus. Otherwise,
    /// or if there turns out to be no relay when the first observer is added, it is ``Visibility/ownProgram``. Posts go out
    /// in any case, and names that begin with `self.` need no bus.
    ///
    /// The answer comes from `/.flatpak-info`, which is read once in a process; see flatpak-metadata(5). Where another
    /// sandbox has a proxy, set the environment variable `NOTIFYBUS_RELAY` to `yes`; with `no` the relay is not used.
    public var visibility: Visibility { obstacleToHearing == nil ? .everyone : .ownProgram }

    /// Why nobody else's posts can be heard here, and what to do, as one or two sentences; nil if they can.
    package var obstacleToHearing: String? {
        switch bus.passage {
        case .open: nil
        case .closed(let reason): reason
        case .relay: peer?.relayed.isMissing == true ? SandboxPassage.reasonWithoutRelay : nil
        }
    }

    /// Why nobody's posts of a name can be heard here; nil if they can.
    package func obstacle(toHearing name: NotifyName) -> String? {
        name.storage.scope == .process ? nil : obstacleToHearing
    }
}
