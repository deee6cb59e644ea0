// SPDX-License-Identifier: Apache-2.0

import Glibc

/// What a post is on the wire, defined in one place: a signal with the member `Posted` and one string, the name, whose
/// path and interface are those of the name.
extension BusMessage {
    /// Whether a signal claims to be a post.
    var looksLikePost: Bool {
        guard kind == .signal, let interface else { return false }
        return strncmp(interface, "org.notifybus.n.", 16) == 0 || strncmp(interface, "org.notifybus.h.", 16) == 0
    }

    /// The name in the body of a signal. The signal is a post of it if a ``PostShape`` matches.
    var postedName: UnsafeRawBufferPointer? {
        guard looksLikePost, hasMember(WireFormat.member), let text, text.count > 0,
            text.count <= NotifyName.maximumLength
        else { return nil }
        return text
    }
}

/// The path and the interface that a post of a name must have to be accepted.
struct PostShape {
    private var path: ContiguousArray<CChar> = []
    private var interface: ContiguousArray<CChar> = []

    /// Matches nothing.
    init() {}

    init(of name: NotifyName) {
        path = WireFormat.path(for: name).utf8CString
        interface = WireFormat.interface(for: name).utf8CString
    }

    func fits(_ message: BusMessage) -> Bool {
        guard let messagePath = message.path, let messageInterface = message.interface else { return false }
        return path.withUnsafeBufferPointer { path in
            interface.withUnsafeBufferPointer { interface in
                guard let path = path.baseAddress, let interface = interface.baseAddress else { return false }
                return strcmp(interface, messageInterface) == 0 && strcmp(path, messagePath) == 0
            }
        }
    }
}

/// Recently received names, so that a name is not created again for each post.
package struct NameCache {
    private static let limit = 1_024

    /// By a hash that outsiders can't predict, as posters choose the names.
    private var known: [Int: (name: NotifyName, shape: PostShape)] = [:]

    package init() {}

    /// The name that a message posts; nil if it is not a post.
    package mutating func name(in message: BusMessage) -> NotifyName? {
        guard let text = message.postedName, let known = find(text), known.shape.fits(message) else { return nil }
        return known.name
    }

    /// - Returns: nil if the bytes are not a valid name.
    mutating func find(_ bytes: UnsafeRawBufferPointer) -> (name: NotifyName, shape: PostShape)? {
        let hash = TopicTable.seededHash(of: bytes)
        if let entry = known[hash], entry.name.hasBytes(bytes) { return entry }
        guard let name = try? NotifyName(utf8: bytes) else { return nil }
        if known.count >= NameCache.limit { known.removeAll() }
        let entry = (name, PostShape(of: name))
        known[hash] = entry
        return entry
    }
}
