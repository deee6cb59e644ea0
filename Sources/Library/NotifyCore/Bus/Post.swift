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
        let hash = NotifyName.seededHash(of: bytes)
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

/// Recently read posts, by their bytes. A sender that posts a name again sends the same bytes except for the serial, so
/// such a post is recognized by comparison and need not be parsed again.
///
/// A post has one slot, which its bytes determine. Two posts that share a slot, by chance or on purpose, evict each
/// other and are parsed each time as if there were no cache.
final class PostCache {
    final class Post {
        let name: NotifyName
        /// The unique name of the sender, including the NUL at its end.
        let sender: ContiguousArray<CChar>
        private let bytes: UnsafeMutableRawBufferPointer

        init(_ name: NotifyName, from sender: UnsafePointer<CChar>, _ message: UnsafeRawBufferPointer) {
            self.name = name
            self.sender = ContiguousArray(UnsafeBufferPointer(start: sender, count: strlen(sender) + 1))
            bytes = .allocate(byteCount: message.count, alignment: 8)
            bytes.copyMemory(from: message)
        }

        deinit { bytes.deallocate() }

        /// Whether a message has the same bytes, apart from the serial.
        func isLike(_ message: UnsafeRawBufferPointer) -> Bool {
            guard message.count == bytes.count, let own = bytes.baseAddress, let other = message.baseAddress else {
                return false
            }
            let rest = BusMessage.serialRange.upperBound
            return own.loadUnaligned(as: UInt64.self) == other.loadUnaligned(as: UInt64.self)
                && other.loadUnaligned(fromByteOffset: BusMessage.serialRange.lowerBound, as: UInt32.self) != 0
                && memcmp(own + rest, other + rest, bytes.count - rest) == 0
        }
    }

    /// A power of two.
    private static let placeCount = 256
    /// Longer ones are not cached, which limits the cache to 128 kB.
    private static let longest = 512

    /// Empty until there is something to cache.
    private var places: [Post?] = []

    var isEmpty: Bool { places.isEmpty }

    func find(_ message: UnsafeRawBufferPointer) -> Post? {
        guard !places.isEmpty, message.count <= PostCache.longest, let post = places[PostCache.place(of: message)],
            post.isLike(message)
        else { return nil }
        return post
    }

    func keep(_ name: NotifyName, from sender: UnsafePointer<CChar>, _ message: UnsafeRawBufferPointer) {
        guard message.count <= PostCache.longest else { return }
        // Moved out meanwhile, as the observers of a topic are.
        var places = places
        self.places = []
        if places.isEmpty { places = Array(repeating: nil, count: PostCache.placeCount) }
        places[PostCache.place(of: message)] = Post(name, from: sender, message)
        self.places = places
    }

    func removeAll() { places = [] }

    /// Mixes everything after the serial, eight bytes at a time; the last eight may overlap.
    private static func place(of message: UnsafeRawBufferPointer) -> Int {
        var hash = UInt64(truncatingIfNeeded: message.count)
        var offset = BusMessage.fixedLength
        func mix(_ offset: Int) {
            let word = message.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            hash = (hash ^ word) &* 0x9e37_79b9_7f4a_7c15
            hash ^= hash >> 32
        }
        while offset + 8 <= message.count {
            mix(offset)
            offset += 8
        }
        if message.count >= BusMessage.fixedLength { mix(message.count - 8) }
        return Int(truncatingIfNeeded: hash) & (placeCount - 1)
    }
}
