// SPDX-License-Identifier: Apache-2.0

import Glibc

/// What a post is on the wire, defined in one place: a signal with the member `Posted` and one string, the name, whose
/// path and interface are those of the name.
extension BusMessage {
    /// The name in the body of a signal. The signal is a post of it if it `isPost(of:)` that name.
    var postedName: UnsafeRawBufferPointer? {
        guard looksLikePost, hasMember(WireFormat.member), let text, text.count > 0,
            text.count <= NotifyName.maximumLength
        else { return nil }
        return text
    }
}

extension BusMessage {
    /// Whether a signal has the path and the interface that a post of this name must have to be accepted.
    ///
    /// Nothing of that is stored for a name: it would take as much memory as everything else about it.
    func isPost(of name: NotifyName) -> Bool {
        guard let path, let interface else { return false }
        return WireFormat.isInterface(interface, of: name) && strcmp(path, WireFormat.path(for: name)) == 0
    }
}

/// Recently received names, so that a name is not created again for each post.
package struct NameCache {
    private static let limit = 1_024

    /// By a hash that outsiders can't predict, as posters choose the names.
    private var known: [Int: NotifyName] = [:]

    package init() {}

    /// The name that a message posts; nil if it is not a post.
    package mutating func name(in message: BusMessage) -> NotifyName? {
        guard let text = message.postedName, let name = find(text), message.isPost(of: name) else { return nil }
        return name
    }

    /// - Returns: nil if the bytes are not a valid name.
    mutating func find(_ bytes: UnsafeRawBufferPointer) -> NotifyName? {
        let hash = TopicTable.seededHash(of: bytes)
        if let name = known[hash], name.hasBytes(bytes) { return name }
        guard let name = try? NotifyName(utf8: bytes) else { return nil }
        if known.count >= NameCache.limit { known.removeAll() }
        known[hash] = name
        return name
    }
}

extension OutgoingMessage {
    /// The post of a name.
    static func post(_ name: NotifyName) -> OutgoingMessage {
        .signal(
            path: WireFormat.path(for: name),
            interface: WireFormat.interface(for: name),
            member: WireFormat.member,
            [.string(name.string)]
        )
    }

    /// A question to the agent that starts programs for names. If there is none, the bus replies with an error.
    static var launcherPing: OutgoingMessage {
        .call(
            AgentInterface.launcherName,
            path: AgentInterface.path,
            interface: "org.freedesktop.DBus.Peer",
            member: "Ping",
            [],
            activates: false
        )
    }
}
