// SPDX-License-Identifier: Apache-2.0

import Glibc

/// What the bridge and the process that holds its connection tell each other.
struct Parcel {
    enum Kind: UInt8 {
        // To the connection.
        case connect, subscribe, publish, ask, disconnect
        // From it.
        case connected, subscribed, answered, message, ended
    }

    let kind: Kind
    let fields: [[UInt8]]

    init(_ kind: Kind, _ fields: [[UInt8]] = []) {
        (self.kind, self.fields) = (kind, fields)
    }

    /// Reads what ``bytes`` has written; nil if it is something else.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard let kind = bytes.first.flatMap(Kind.init(rawValue:)) else { return nil }
        var fields: [[UInt8]] = []
        var rest = bytes.dropFirst()
        while !rest.isEmpty {
            guard rest.count >= 4 else { return nil }
            let count = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
            rest = rest.dropFirst(4)
            guard rest.count >= count else { return nil }
            fields.append(Array(rest.prefix(count)))
            rest = rest.dropFirst(count)
        }
        (self.kind, self.fields) = (kind, fields)
    }

    var bytes: [UInt8] {
        var bytes = [kind.rawValue]
        for field in fields {
            bytes += [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: field.count >> $0) }
            bytes += field
        }
        return bytes
    }

    static func field(_ number: Int) -> [UInt8] { field(String(number)) }
    static func field(_ text: String) -> [UInt8] { Array(text.utf8) }

    /// A field; empty if there is none.
    subscript(_ index: Int) -> [UInt8] { index < fields.count ? fields[index] : [] }

    func text(_ index: Int) -> String { String(decoding: self[index], as: UTF8.self) }
    func number(_ index: Int) -> Int { Int(text(index)) ?? 0 }
}

/// One end of a socket that carries parcels, each as a whole. See `SOCK_SEQPACKET` in unix(7).
final class ParcelSocket {
    enum Outcome { case sent, full, gone }
    enum Arrival {
        case parcel(Parcel)
        case nothing
        /// The other end is closed.
        case gone
    }

    /// More than any parcel has.
    private static let capacity = 262_144

    let descriptor: Int32
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 1)

    /// - Parameter descriptor: belongs to the object from now on.
    init(_ descriptor: Int32) {
        self.descriptor = descriptor
    }

    deinit {
        close(descriptor)
        buffer.deallocate()
    }

    /// Whether a descriptor is such a socket.
    static func isOne(_ descriptor: Int32) -> Bool {
        var type: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) == 0
            && type == Int32(SOCK_SEQPACKET.rawValue)
    }

    func send(_ bytes: [UInt8], waits: Bool) -> Outcome {
        let flags = waits ? Int32(MSG_NOSIGNAL) : Int32(MSG_NOSIGNAL | MSG_DONTWAIT)
        while Glibc.send(descriptor, bytes, bytes.count, flags) < 0 {
            switch errno {
            case EINTR: continue
            case EAGAIN, ENOBUFS: return .full
            default: return .gone
            }
        }
        return .sent
    }

    func receive(waits: Bool) -> Arrival {
        let flags = waits ? 0 : Int32(MSG_DONTWAIT)
        while true {
            let count = recv(descriptor, buffer.baseAddress, buffer.count, flags)
            // The other end was closed before it had read everything. Linux says so before what it has sent, and only once.
            if count < 0, errno == EINTR || errno == ECONNRESET { continue }
            if count < 0, errno == EAGAIN { return .nothing }
            guard count > 0, let parcel = Parcel(UnsafeRawBufferPointer(rebasing: buffer[..<count])) else {
                return .gone
            }
            return .parcel(parcel)
        }
    }
}

/// What a client logs in with.
struct BrokerLogin {
    let id: String
    let broker: BrokerAddress
    let keepalive: Int32
    let user: String?
    let password: String?
    let tls: BridgeConfiguration.TLSFiles

    init(id: String, _ configuration: BridgeConfiguration) {
        self.id = id
        broker = configuration.broker
        keepalive = configuration.keepalive
        user = configuration.user
        password = configuration.password
        tls = configuration.tls
    }

    /// nil if it is none.
    init?(_ parcel: Parcel) {
        guard parcel.kind == .connect, let broker = BrokerAddress(parcel.text(1)) else { return nil }
        func optional(_ index: Int) -> String? {
            // The first byte says whether there is a value.
            parcel[index].first == 1 ? String(decoding: parcel[index].dropFirst(), as: UTF8.self) : nil
        }
        id = parcel.text(0)
        self.broker = broker
        keepalive = Int32(clamping: parcel.number(2))
        user = optional(3)
        password = optional(4)
        var tls = BridgeConfiguration.TLSFiles()
        (tls.authorities, tls.certificate, tls.key) = (optional(5), optional(6), optional(7))
        self.tls = tls
    }

    var parcel: Parcel {
        let optionals = [user, password, tls.authorities, tls.certificate, tls.key]
        return Parcel(
            .connect,
            [Parcel.field(id), Parcel.field(broker.description), Parcel.field(Int(keepalive))]
                + optionals.map { text in text.map { [1] + Array($0.utf8) } ?? [0] }
        )
    }
}

/// What a broker says about itself when it accepts a client. See section 3.2.2.3 of MQTT 5.
struct BrokerAbilities {
    /// The size of the largest packet that it takes; nil if it has not said.
    var maximumPacket: Int?
    /// Whether it keeps messages.
    var retains = true
    /// Whether it takes filters with wildcards.
    var hasWildcards = true

    init() {}

    init(_ parcel: Parcel) {
        maximumPacket = parcel.number(1) > 0 ? parcel.number(1) : nil
        retains = parcel.number(2) != 0
        hasWildcards = parcel.number(3) != 0
    }

    func parcel(_ reason: Int32) -> Parcel {
        let numbers = [Int(reason), maximumPacket ?? 0, retains ? 1 : 0, hasWildcards ? 1 : 0]
        return Parcel(.connected, numbers.map(Parcel.field))
    }
}
