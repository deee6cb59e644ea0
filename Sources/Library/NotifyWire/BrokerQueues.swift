// SPDX-License-Identifier: Apache-2.0

/// What dbus-broker has queued, by connection, and the quotas of users.
///
/// It charges a user for each message queued for one of the user's connections, including header and bookkeeping: 2 kB
/// for a short post, for each receiver, although it stores the post once. When the quota is used up, it disconnects the
/// next connection that a message is for, however quickly that one reads.
package struct BrokerQueues {
    package struct Queue {
        /// The connection's unique name.
        package let name: String
        package let user: UInt32
        package let bytes: Int

        package init(name: String, user: UInt32, bytes: Int) {
            (self.name, self.user, self.bytes) = (name, user, bytes)
        }
    }

    /// The queues that are not empty.
    package var queues: [Queue] = []
    /// How many bytes each user may have in queues and everything else.
    package var limits: [UInt32: Int] = [:]
    /// All connections, and all their match rules.
    package var connectionCount = 0
    package var ruleCount = 0

    /// The method to call; dbus-broker has it since version 33, for the bus's own user and for root.
    package static let interface = "org.freedesktop.DBus.Debug.Stats"
    package static let member = "GetStats"

    package init() {}

    /// What it takes the bus to count all this, in nanoseconds, and not less: 150 were measured for a rule, 100 for a
    /// message, and 1,300 for a connection, for each of which the bus also goes through the names that can be activated.
    package var greatestCost: Int64 {
        let messages = queues.reduce(0) { $0 + $1.bytes } / 2_000
        return Int64(connectionCount) * 5_000 + Int64(ruleCount + messages) * 200
    }

    /// - Parameter message: the reply to `GetStats`.
    /// - Returns: nil if the message is something else.
    package init?(_ message: BusMessage) {
        guard message.kind == .reply, message.signature.elementsEqual("a{sv}".utf8) else { return nil }
        var reader = message.bodyReader
        guard let end = reader.arrayEnd(alignment: 8) else { return nil }
        while reader.position < end {
            guard reader.align(to: 8), let key = reader.string(), let type = reader.signature() else { return nil }
            let isRead: Bool
            if key.elementsEqual("org.bus1.DBus.Debug.Stats.PeerAccounting".utf8) {
                guard type.elementsEqual("a(sa{sv}a{su})".utf8) else { return nil }
                isRead = readConnections(&reader)
            } else if key.elementsEqual("org.bus1.DBus.Debug.Stats.UserAccounting".utf8) {
                guard type.elementsEqual("a(ua(suu)a{ua{su}})".utf8) else { return nil }
                isRead = readUsers(&reader)
            } else {
                isRead = reader.skip(type)
            }
            guard isRead else { return nil }
        }
        if limits.isEmpty { return nil }
    }

    /// Reads the name, the credentials and the counters of each connection.
    private mutating func readConnections(_ reader: inout WireReader) -> Bool {
        guard let end = reader.arrayEnd(alignment: 8) else { return false }
        while reader.position < end {
            guard reader.align(to: 8), let name = reader.string(), let credentials = reader.arrayEnd(alignment: 8)
            else {
                return false
            }
            var user: UInt32?
            while user == nil, reader.position < credentials {
                guard reader.align(to: 8), let key = reader.string(), let type = reader.signature() else {
                    return false
                }
                if key.elementsEqual("UnixUserID".utf8), type.elementsEqual("u".utf8) {
                    user = reader.uint32()
                } else if !reader.skip(type) {
                    return false
                }
            }
            guard reader.skip(to: credentials), let figures = reader.arrayEnd(alignment: 8) else { return false }
            connectionCount += 1
            var bytes: UInt32 = 0
            while reader.position < figures {
                guard reader.align(to: 8), let key = reader.string(), let figure = reader.uint32() else { return false }
                if key.elementsEqual("OutgoingBytes".utf8) { bytes = figure }
                if key.elementsEqual("Matches".utf8) { ruleCount += Int(figure) }
            }
            if bytes > 0, let user {
                queues.append(Queue(name: String(decoding: name, as: UTF8.self), user: user, bytes: Int(bytes)))
            }
        }
        return true
    }

    /// Reads each user's quota and what is left of it.
    private mutating func readUsers(_ reader: inout WireReader) -> Bool {
        guard let end = reader.arrayEnd(alignment: 8) else { return false }
        while reader.position < end {
            guard reader.align(to: 8), let user = reader.uint32(), let slots = reader.arrayEnd(alignment: 8) else {
                return false
            }
            while reader.position < slots {
                guard reader.align(to: 8), let key = reader.string(), reader.uint32() != nil,
                    let limit = reader.uint32()
                else { return false }
                if key.elementsEqual("Bytes".utf8) { limits[user] = Int(limit) }
            }
            // How much of this user's quota each user has used.
            guard let shares = reader.arrayEnd(alignment: 8), reader.skip(to: shares) else { return false }
        }
        return true
    }
}
