// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization
import TestSupport
import Testing

/// A real X server without a screen, on a display number of its own.
final class XServer: Sendable {
    static let isInstalled = TestSupport.isInstalled("Xvfb")

    let number: Int
    private let server: Mutex<RunningCommand>

    var display: String { ":\(number)" }

    init() throws {
        // The first free number could be taken by another while this server is dead.
        number = Int.random(in: 10_000..<50_000)
        server = Mutex(try XServer.start(number))
    }

    private static func start(_ number: Int) throws -> RunningCommand {
        let server = try TestSupport.start(
            "Xvfb",
            [":\(number)", "-displayfd", "1", "-noreset", "-nolisten", "tcp", "-screen", "0", "64x64x24"]
        )
        // It prints its number once it is ready.
        try server.waitForOutputLines(1, timeout: .patience)
        return server
    }

    func kill() throws {
        try server.withLock { server in
            server.send(signal: SIGTERM)
            _ = try server.wait(timeout: .patience)
        }
    }

    /// Starts it again after ``kill()``, with the same number.
    func restart() throws {
        try server.withLock { $0 = try XServer.start(number) }
    }
}

/// An X client that does only what a window manager does about the focus, in bytes of the X protocol, version 11.
final class XClient {
    private let socket: Int32
    private let root: UInt32
    private let base: UInt32
    private var lastWindow: UInt32 = 0
    private var atoms: [String: UInt32] = [:]

    init(_ server: XServer) throws {
        socket = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = UInt16(AF_UNIX)
        let path = "/tmp/.X11-unix/X\(server.number)"
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let descriptor = socket
        let status = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard status == 0 else {
            close(descriptor)
            throw TestSupportError("There is no X server at \(path).")
        }
        try XClient.send(XClient.words([0x000b_006c, 0, 0]), to: socket)
        let head = try XClient.receive(8, from: socket)
        guard head[0] == 1 else { throw TestSupportError("The X server refuses connections.") }
        let rest = try XClient.receive((Int(head[6]) | Int(head[7]) << 8) * 4, from: socket)
        func number(at offset: Int) -> UInt32 {
            rest.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: UInt32.self) }
        }
        base = number(at: 4)
        let vendor = Int(number(at: 16) & 0xffff)
        root = number(at: 32 + (vendor + 3) / 4 * 4 + Int(rest[21]) * 8)
    }

    deinit { close(socket) }

    private static func words(_ words: [UInt32]) -> [UInt8] {
        words.flatMap { word in withUnsafeBytes(of: word.littleEndian) { Array($0) } }
    }

    private static func send(_ bytes: [UInt8], to socket: Int32) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { throw TestSupportError("The X server is not listening.") }
            rest = rest.dropFirst(count)
        }
    }

    private static func receive(_ count: Int, from socket: Int32) throws -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count {
            var chunk = [UInt8](repeating: 0, count: count - bytes.count)
            let received = read(socket, &chunk, chunk.count)
            guard received > 0 else { throw TestSupportError("The X server went away.") }
            bytes += chunk[..<received]
        }
        return bytes
    }

    private func atom(_ name: String) throws -> UInt32 {
        if let known = atoms[name] { return known }
        let padded = Array(name.utf8) + [UInt8](repeating: 0, count: (4 - name.utf8.count % 4) % 4)
        let length = UInt32(2 + padded.count / 4)
        try XClient.send(XClient.words([16 | length << 16, UInt32(name.utf8.count)]) + padded, to: socket)
        let reply = try XClient.receive(32, from: socket)
        let atom = reply.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: 8, as: UInt32.self) }
        atoms[name] = atom
        return atom
    }

    /// Makes a window of this process.
    func makeWindow() throws -> UInt32 {
        lastWindow += 1
        let window = base | lastWindow
        try XClient.send(XClient.words([1 | 8 << 16, window, root, 0, 1 | 1 << 16, 0, 0, 0]), to: socket)
        return window
    }

    /// Does what a window manager does when the focus changes. 0 is no window.
    func setActiveWindow(_ windows: [UInt32]) throws {
        let name = try atom("_NET_ACTIVE_WINDOW")
        // WINDOW is atom 33.
        let requests: [[UInt32]] = windows.map { [18 | 7 << 16, root, name, 33, 32, 1, $0] }
        try XClient.send(XClient.words(requests.flatMap { $0 }), to: socket)
        // Once this is answered, the server has handled them all.
        atoms["WM_NAME"] = nil
        _ = try atom("WM_NAME")
    }
}
