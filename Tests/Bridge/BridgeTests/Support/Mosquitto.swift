// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization
import TestSupport
import Testing

/// A private Mosquitto for one test. It ends with the last reference to it.
final class Mosquitto: Sendable {
    /// Why it can't be started here; nil if it can.
    static let unavailable: Comment? = program == nil ? "mosquitto is not installed." : nil

    private static let program: String? = ["/usr/sbin/mosquitto", "/usr/bin/mosquitto", "/usr/local/sbin/mosquitto"]
        .first { (path: String) in access(path, X_OK) == 0 }

    let port: Int
    let folder: TemporaryFolder
    private let process: Mutex<RunningCommand?>
    /// What to put before a command to run it in another network; empty for this one.
    private let prefix: [String]

    /// - Parameters:
    ///   - listener: more lines for the listener, such as certificates.
    ///   - settings: lines for the whole broker.
    ///   - port: where to listen; nil for any free port.
    init(
        port: Int? = nil,
        listener: [String] = [],
        settings: [String] = ["allow_anonymous true"],
        folder: TemporaryFolder? = nil,
        in network: Network? = nil
    ) throws {
        prefix = network?.prefix ?? []
        self.port = try port ?? freePort()
        self.folder = try folder ?? TemporaryFolder()
        let lines =
            ["user root", "persistence false", "log_type all", "log_dest stderr", "connection_messages true"]
            + ["listener \(self.port)" + (network == nil ? " 127.0.0.1" : "")] + listener + settings
        try self.folder.write(lines.joined(separator: "\n") + "\n", to: "mosquitto.conf")
        process = Mutex(nil)
        try start()
    }

    var address: String { "mqtt://127.0.0.1:\(port)" }
    var pid: pid_t { process.withLock { $0?.pid ?? 0 } }

    /// Starts it, and returns when it accepts connections.
    func start() throws {
        let command = prefix + [Self.program ?? "mosquitto", "-c", "\(folder.path)/mosquitto.conf"]
        let running = try TestSupport.start(command[0], Array(command.dropFirst()), input: .null)
        try running.waitForErrorOutput(containing: "mosquitto version")
        if prefix.isEmpty {
            guard waitUntil({ accepts(port) }) else { throw TestSupportError("mosquitto does not listen at \(port)") }
        } else {
            try running.waitForErrorOutput(containing: "running")
        }
        process.withLock { $0 = running }
    }

    func kill() throws {
        let running = process.withLock { process in
            defer { process = nil }
            return process
        }
        running?.send(signal: SIGKILL)
        _ = try running?.wait()
    }

    func stop() { process.withLock { $0?.send(signal: SIGSTOP) } }
    func resume() { process.withLock { $0?.send(signal: SIGCONT) } }

    /// Waits for a line of its log.
    func waitForLog(_ text: String, timeout: Duration = .seconds(120)) throws {
        let running = process.withLock { $0 }
        try running?.waitForErrorOutput(containing: text, timeout: timeout)
    }

    /// The number of pings it has received.
    var pings: Int {
        get throws {
            let log = try process.withLock { $0 }?.waitForErrorOutput(containing: "mosquitto version") ?? ""
            return log.split(separator: "\n").count { $0.contains("Received PINGREQ") }
        }
    }

    /// Publishes like any MQTT client.
    func publish(_ topic: String, _ payload: [String] = ["-n"], _ more: [String] = []) throws {
        let result = try run(
            "mosquitto_pub",
            ["-V", "5", "-h", "127.0.0.1", "-p", "\(port)", "-t", topic] + payload + more
        )
        guard result.status == 0 else { throw TestSupportError("mosquitto_pub: \(result.errorOutput)") }
    }
}

/// A free port of the loopback interface, another one each time.
///
/// It is not one of those that the kernel gives to clients, because a client could take it before the broker does, or
/// while the broker is down.
func freePort() throws -> Int {
    let port = lastPort.withLock { last -> Int? in
        for _ in 0..<1_000 {
            last = last < 32_000 ? last + 1 : 10_000
            if isFree(last) { return last }
        }
        return nil
    }
    guard let port else { throw TestSupportError("There is no free port") }
    return port
}

private let lastPort = Mutex(Int.random(in: 10_000..<32_000))

private func isFree(_ port: Int) -> Bool {
    let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(socket) }
    return with(port) { bind(socket, $0, $1) == 0 }
}

private func accepts(_ port: Int) -> Bool {
    let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(socket) }
    return with(port) { connect(socket, $0, $1) == 0 }
}

/// Calls `body` with the address of a port of the loopback interface, and its size.
private func with<Result>(_ port: Int, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
    }
}
