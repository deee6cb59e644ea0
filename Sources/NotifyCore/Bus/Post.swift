// SPDX-License-Identifier: Apache-2.0

import Glibc

/// What a post is on the wire, said once: a signal with the member `Posted` and one string, the name, whose path and
/// interface are those of the name.
extension BusMessage {
    /// Whether a signal claims to be a post.
    var looksLikePost: Bool {
        guard kind == .signal, let interface else { return false }
        return strncmp(interface, "org.notifybus.n.", 16) == 0 || strncmp(interface, "org.notifybus.h.", 16) == 0
    }

    /// The name that a signal posts, by its body. It is one if a ``PostShape`` fits.
    var postedName: UnsafeRawBufferPointer? {
        guard looksLikePost, hasMember(WireFormat.member), let text, text.count > 0,
            text.count <= NotifyName.maximumLength
        else { return nil }
        return text
    }
}

/// The path and the interface that the post of a name must have to be believed.
struct PostShape {
    private var path: ContiguousArray<CChar> = []
    private var interface: ContiguousArray<CChar> = []

    /// Fits nothing.
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

/// Names that came in lately, so that a name is not made again for each post.
package struct NameCache {
    private static let limit = 1_024

    /// By a hash that nobody outside can foresee: posters choose the names.
    private var known: [Int: (name: NotifyName, shape: PostShape)] = [:]

    package init() {}

    /// The name that a message posts; nil if it is no post.
    package mutating func name(in message: BusMessage) -> NotifyName? {
        guard let text = message.postedName, let known = find(text), known.shape.fits(message) else { return nil }
        return known.name
    }

    /// - Returns: nil if the bytes are not a name.
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
