// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// Relays bytes between clients and a bus, so that a test can close connections like a living bus that disconnects a
/// client. Descriptors are not passed on.
public final class BusRelay: Sendable {
    /// How it treats what clients and the bus say to each other before the first message.
    public enum Manner: Sendable {
        /// Passes everything on.
        case usual
        /// Rejects a client that says more than one line before it has heard the answer.
        case wantsOneLineAtATime
        /// Passes on the answers byte by byte.
        case dribbles
        /// Passes on nothing that the client says once the bus has accepted it.
        case fallsSilent
        /// Replaces this text of the bus by as many bytes that are no text.
        case garbles(String)
    }

    /// Its address, as in `DBUS_SESSION_BUS_ADDRESS`.
    public let address: String
    /// How many bytes have been passed on to clients.
    public let bytesToClients = Counter()

    private let folder: String
    private let listener: Int32
    private let target: String
    private let manner: Manner
    private let links: Mutex<[Link]> = Mutex([])
    private let ending = Atomic(false)
    /// Whether nothing that clients say is passed on, as by a bus that is too busy to read.
    private let isHolding = Monitor(false)

    /// Starts listening for clients of the bus at `address`.
    public init(to address: String, _ manner: Manner = .usual) throws {
        self.manner = manner
        folder = try makeFolder()
        target = try BusAddress.path(of: address)
        self.address = BusAddress.unix(path: "\(folder)/bus")
        listener = try listen(at: "\(folder)/bus", backlog: 16)
        startThread { [self] in accept() }
    }

    /// Passes on nothing more that clients say, until `resume`. They hear what the bus says all the same.
    public func hold() { isHolding.change { $0 = true } }

    /// Passes on what clients have said meanwhile, and everything after it.
    public func resume() { isHolding.change { $0 = false } }

    /// Closes every connection; new ones are accepted.
    public func cutAll() {
        let all = links.withLock { links in
            defer { links = [] }
            return links
        }
        for link in all { link.end() }
    }

    /// Closes the connection that was made last.
    public func cutNewest() { links.withLock { $0.popLast() }?.end() }

    /// Accepts no more connections, and closes all of them.
    public func close() {
        ending.store(true, ordering: .sequentiallyConsistent)
        shutdown(listener, Int32(SHUT_RDWR))
        cutAll()
        removeFolder(folder)
    }

    private func accept() {
        while true {
            let client = Glibc.accept(listener, nil, nil)
            if ending.load(ordering: .sequentiallyConsistent) {
                if client >= 0 { Glibc.close(client) }
                Glibc.close(listener)
                return
            }
            guard client >= 0 else { continue }
            guard let bus = try? connect(toSocketAt: target) else {
                Glibc.close(client)
                continue
            }
            let link = Link(client, bus)
            links.withLock { $0.append(link) }
            startThread { [manner, isHolding] in
                var hasEntered = false
                pass(from: client, to: bus, link) { said, isFirst in
                    guard isHolding.wait(until: Deadline(after: .patience), { !$0 }) else { return nil }
                    // The client says nothing more until it has read the answer to Hello.
                    if case .fallsSilent = manner {
                        defer { hasEntered = hasEntered || said.contains("Hello") }
                        return hasEntered ? .max : 0
                    }
                    guard case .wantsOneLineAtATime = manner, isFirst, said.split(separator: "\r\n").count > 1 else {
                        return 0
                    }
                    sendAll(Array("REJECTED EXTERNAL\r\n".utf8)[...], to: client)
                    return nil
                }
            }
            startThread { [manner, bytesToClients] in
                let garbled: String? = if case .garbles(let text) = manner { text } else { nil }
                pass(from: bus, to: client, link, garbling: garbled, counting: bytesToClients) { _, isFirst in
                    if case .dribbles = manner, isFirst { 1 } else { 0 }
                }
            }
        }
    }
}

/// A socket that accepts connections but never answers, like a hanging bus.
public final class HangingBus: Sendable {
    /// Its address, as in `DBUS_SESSION_BUS_ADDRESS`.
    public let address: String

    private let folder: String?
    private let listener: Int32
    private let client: Int32

    /// Listens at a new address, or instead of a bus, which keeps the clients that it has.
    ///
    /// - Parameter isFull: whether so many clients wait to be accepted that no other one can connect.
    public init(inPlaceOf bus: PrivateBus? = nil, isFull: Bool = false) throws {
        folder = try bus == nil ? makeFolder() : nil
        address = bus?.address ?? BusAddress.unix(path: "\(folder ?? "")/bus")
        let path = try BusAddress.path(of: address)
        unlink(path)
        // The kernel completes the connections; no process accepts them.
        // One more client than that connects at once.
        listener = try listen(at: path, backlog: isFull ? 0 : 128)
        client = isFull ? try connect(toSocketAt: path) : -1
    }

    /// Waits until a client has connected.
    public func waitForConnection() throws {
        var source = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
        guard poll(&source, 1, Deadline(after: .patience).remainingMilliseconds) == 1 else {
            throw TestSupportError("Nobody connects.")
        }
    }

    /// The number of connections since the last call. They are closed.
    public func takeConnections() -> Int {
        var count = 0
        var source = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
        while poll(&source, 1, 0) > 0, case let client = Glibc.accept(listener, nil, nil), client >= 0 {
            Glibc.close(client)
            count += 1
        }
        return count
    }

    deinit {
        close(listener)
        if client >= 0 { close(client) }
        if let folder { removeFolder(folder) }
    }
}

/// The two sockets of a link. They are closed with the last reference to it.
private final class Link: Sendable {
    private let descriptors: (Int32, Int32)

    init(_ first: Int32, _ second: Int32) { descriptors = (first, second) }

    func end() {
        shutdown(descriptors.0, Int32(SHUT_RDWR))
        shutdown(descriptors.1, Int32(SHUT_RDWR))
    }

    deinit {
        close(descriptors.0)
        close(descriptors.1)
    }
}

/// Passes on what arrives, until one side ends the connection.
///
/// - Parameters:
///   - garbled: becomes bytes that are no text, if it arrives at once.
///   - passed: counts the bytes that were passed on.
///   - inspect: looks at what has arrived, and is told whether nothing came before it. It returns how many bytes to pass on
///     at once; 0 for all, `Int.max` for none, nil to end the connection.
private func pass(
    from source: Int32,
    to target: Int32,
    _ link: Link,
    garbling garbled: String? = nil,
    counting passed: Counter? = nil,
    _ inspect: (_ said: String, _ isFirst: Bool) -> Int?
) {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    var isFirst = true
    defer { link.end() }
    while true {
        let count = recv(source, &buffer, buffer.count, 0)
        guard count > 0, let portion = inspect(String(decoding: buffer[..<count], as: UTF8.self), isFirst) else {
            return
        }
        isFirst = false
        if portion == .max { continue }
        if let garbled = garbled?.utf8, count >= garbled.count {
            for start in 0...count - garbled.count where buffer[start...].starts(with: garbled) {
                for index in start..<start + garbled.count { buffer[index] = 0xff }
            }
        }
        for start in stride(from: 0, to: count, by: portion == 0 ? count : portion) {
            guard sendAll(buffer[start..<(portion == 0 ? count : start + portion)], to: target) else { return }
        }
        passed?.add(count)
    }
}

@discardableResult private func sendAll(_ bytes: ArraySlice<UInt8>, to target: Int32) -> Bool {
    var rest = bytes
    while !rest.isEmpty {
        let written = rest.withUnsafeBytes { send(target, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
        guard written > 0 else { return false }
        rest = rest.dropFirst(written)
    }
    return true
}

/// The address of a socket in the file system.
func socketAddress(_ path: String) throws -> sockaddr_un {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let fits = withUnsafeMutableBytes(of: &address.sun_path) { bytes in
        guard path.utf8.count < bytes.count else { return false }
        bytes.copyBytes(from: path.utf8)
        return true
    }
    guard fits else { throw TestSupportError("\(path) is too long for a socket.") }
    return address
}

func listen(at path: String, backlog: Int32) throws -> Int32 {
    var address = try socketAddress(path)
    let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    let result = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
        }
    }
    guard result == 0, listen(listener, backlog) == 0 else {
        close(listener)
        throw TestSupportError("Cannot listen at \(path): \(lastError())")
    }
    return listener
}

private func connect(toSocketAt path: String) throws -> Int32 {
    var address = try socketAddress(path)
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    let result = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
        }
    }
    guard result == 0 else {
        close(descriptor)
        throw TestSupportError("Cannot connect to \(path): \(lastError())")
    }
    return descriptor
}
