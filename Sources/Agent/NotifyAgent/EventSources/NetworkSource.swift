// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import NotifyCore
import NotifyNames

/// Addresses, default routes and interfaces in the agent's network namespace. The kernel reports each change; the
/// result is queried when the changes pause. See rtnetlink(7).
final class NetworkSource: Source {
    static let name: NotifyName = "com.apple.system.config.network_change"

    /// How long to wait for the next message, and in total, in milliseconds.
    private static let pause: Int64 = 250
    private static let timeLimit: Int64 = 5_000

    private var socket: Int32 = -1
    private weak var driver: SourceDriver?
    private var timer: Int?
    private var limit: MonotonicTime?
    private var digest: NetworkDigest?

    func begin(on driver: SourceDriver) throws(SourceFault) {
        socket = linux_route_socket(true)
        guard socket >= 0 else { throw .system("can't create a netlink socket") }
        self.driver = driver
        driver.loop.watch(socket) { [weak self] in self?.read() }
        look()
        driver.isLive()
    }

    func end() {
        driver?.loop.cancel(timer)
        if socket >= 0 {
            driver?.loop.forget(socket)
            close(socket)
        }
        (socket, driver, timer, limit) = (-1, nil, nil, nil)
    }

    /// The content of the messages does not matter: some may have been lost.
    private func read() {
        withUnsafeTemporaryAllocation(byteCount: 16_384, alignment: 8) { buffer in
            while recv(socket, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT)) >= 0 || errno == ENOBUFS {}
        }
        guard let loop = driver?.loop else { return }
        let limit = limit ?? .now + NetworkSource.timeLimit
        self.limit = limit
        loop.cancel(timer)
        timer = loop.after(min(NetworkSource.pause, Int64(limit.millisecondsFromNow))) { [weak self] in self?.look() }
    }

    private func look() {
        (timer, limit) = (nil, nil)
        guard let new = NetworkDigest.ofThisMoment() else {
            driver?.fail(SourceFault("the kernel did not report the state of the network"))
            return
        }
        defer { digest = new }
        if let digest, digest != new {
            driver?.post(NetworkSource.name, state: new.state)
        } else {
            driver?.note(NetworkSource.name, state: new.state)
        }
    }
}

/// The relevant state of the network: default routes, whether the interfaces that they lead to work, and externally
/// reachable addresses. A new MTU, a renewed lease of the same address or an interface without either, such as a
/// container's, is not a change.
struct NetworkDigest: Equatable {
    /// For each address family, the default routes: interface, gateway, preferred source and metric.
    private var routes: Set<[UInt8]> = []
    private var addresses: Set<[UInt8]> = []
    /// The interfaces that work, and those that default routes lead to, by number.
    private var interfaces: Set<[UInt8]> = []
    private var ways: Set<[UInt8]> = []
    private var hasIPv4 = false
    private var hasIPv6 = false

    static func == (left: NetworkDigest, right: NetworkDigest) -> Bool {
        left.routes == right.routes && left.addresses == right.addresses
            && left.ways.intersection(left.interfaces) == right.ways.intersection(right.interfaces)
    }

    /// Bit 0: an IPv4 default route; 1: an IPv6 one; 2: an interface is up.
    var state: UInt64 { (hasIPv4 ? 1 : 0) | (hasIPv6 ? 2 : 0) | (interfaces.isEmpty ? 0 : 4) }

    /// Asks the kernel.
    ///
    /// - Returns: nil if its reply is invalid.
    static func ofThisMoment() -> NetworkDigest? {
        let socket = linux_route_socket(false)
        guard socket >= 0 else { return nil }
        defer { close(socket) }
        // Something may change while the kernel replies; then it reports that.
        for _ in 0..<5 {
            var digest = NetworkDigest()
            let answers = [Kind.getLink, Kind.getAddress, Kind.getRoute].map { digest.ask(socket, $0) }
            if answers.contains(.failed) { return nil }
            if !answers.contains(.interrupted) { return digest }
        }
        return nil
    }

    private enum Outcome { case whole, interrupted, failed }

    /// Of rtnetlink(7).
    private enum Kind {
        static let done: UInt16 = 3
        static let error: UInt16 = 2
        static let link: UInt16 = 16
        static let getLink: UInt16 = 18
        static let address: UInt16 = 20
        static let getAddress: UInt16 = 22
        static let route: UInt16 = 24
        static let getRoute: UInt16 = 26
    }

    private mutating func ask(_ socket: Int32, _ request: UInt16) -> Outcome {
        guard linux_route_ask(socket, request) == 0 else { return .failed }
        var outcome = Outcome.whole
        return withUnsafeTemporaryAllocation(byteCount: 65_536, alignment: 8) { buffer in
            while true {
                let count = recv(socket, buffer.baseAddress, buffer.count, 0)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return .failed }
                var rest = UnsafeRawBufferPointer(rebasing: buffer[..<count])
                while let message = NetworkDigest.take(from: &rest) {
                    // NLM_F_DUMP_INTR
                    if message.flags & 0x10 != 0 { outcome = .interrupted }
                    if message.kind == Kind.done { return outcome }
                    if message.kind == Kind.error { return .failed }
                    note(message.kind, message.body)
                }
            }
        }
    }

    private typealias Message = (kind: UInt16, flags: UInt16, body: UnsafeRawBufferPointer)

    private static func take(from rest: inout UnsafeRawBufferPointer) -> Message? {
        guard rest.count >= 16 else { return nil }
        let length = Int(rest.loadUnaligned(fromByteOffset: 0, as: UInt32.self))
        guard length >= 16, length <= rest.count else { return nil }
        let kind = rest.loadUnaligned(fromByteOffset: 4, as: UInt16.self)
        let flags = rest.loadUnaligned(fromByteOffset: 6, as: UInt16.self)
        let body = UnsafeRawBufferPointer(rebasing: rest[16..<length])
        rest = UnsafeRawBufferPointer(rebasing: rest[min(rest.count, (length + 3) & ~3)...])
        return (kind, flags, body)
    }

    /// The attributes behind a header of so many bytes.
    private static func attributes(_ body: UnsafeRawBufferPointer, after header: Int) -> [UInt16: [UInt8]] {
        var all: [UInt16: [UInt8]] = [:]
        var offset = header
        while offset + 4 <= body.count {
            let length = Int(body.loadUnaligned(fromByteOffset: offset, as: UInt16.self))
            let kind = body.loadUnaligned(fromByteOffset: offset + 2, as: UInt16.self)
            guard length >= 4, offset + length <= body.count else { break }
            all[kind] = Array(body[offset + 4..<offset + length])
            offset += (length + 3) & ~3
        }
        return all
    }

    private mutating func note(_ kind: UInt16, _ body: UnsafeRawBufferPointer) {
        switch kind {
        case Kind.link where body.count >= 16:
            let flags = body.loadUnaligned(fromByteOffset: 8, as: UInt32.self)
            // IFF_UP and IFF_RUNNING, not IFF_LOOPBACK.
            if flags & 0x49 == 0x41 { interfaces.insert(Array(body[4..<8])) }
        case Kind.address where body.count >= 8:
            // RT_SCOPE_UNIVERSE
            guard body[3] == 0 else { return }
            let attributes = NetworkDigest.attributes(body, after: 8)
            // IFA_LOCAL, or where that is missing IFA_ADDRESS; with interface and length of the prefix.
            guard let address = attributes[2] ?? attributes[1] else { return }
            addresses.insert(Array(body[4..<8]) + [body[1]] + address)
        case Kind.route where body.count >= 12:
            // A way to everywhere, RTN_UNICAST.
            guard body[1] == 0, body[7] == 1 else { return }
            let attributes = NetworkDigest.attributes(body, after: 12)
            // RTA_TABLE: RT_TABLE_MAIN
            let table =
                attributes[15].map { $0.withUnsafeBytes { $0.loadUnaligned(as: UInt32.self) } } ?? UInt32(body[4])
            guard table == 254 else { return }
            if body[0] == UInt8(AF_INET) { hasIPv4 = true }
            if body[0] == UInt8(AF_INET6) { hasIPv6 = true }
            // RTA_OIF, RTA_GATEWAY, RTA_PREFSRC, RTA_PRIORITY, RTA_MULTIPATH, RTA_VIA
            var route = [body[0]]
            for kind: UInt16 in [4, 5, 7, 6, 9, 18] {
                let value = attributes[kind] ?? []
                route += [UInt8(truncatingIfNeeded: kind), UInt8(truncatingIfNeeded: value.count)] + value
            }
            routes.insert(route)
            if let way = attributes[4] { ways.insert(way) }
        default: break
        }
    }
}
