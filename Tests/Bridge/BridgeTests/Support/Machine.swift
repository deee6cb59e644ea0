// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import Synchronization
import TestSupport

/// A simulated machine: a private bus, a center on it, and a bridge.
final class Machine: Sendable {
    let bus: PrivateBus
    let center: NotifyCenter
    /// Where the bridge has its configuration and its state.
    let folder: TemporaryFolder
    private let running: Mutex<RunningCommand?>
    private let observations = Mutex<[NotifyCenter.Observation]>([])

    /// A machine whose bridge is configured but not started.
    init(_ kind: BusKind, limits: [String: Int] = [:], _ lines: [String]) throws {
        bus = try PrivateBus(kind, limits: limits)
        center = NotifyCenter(bus: .address(bus.address))
        folder = try TemporaryFolder()
        running = Mutex(nil)
        try configure(lines)
    }

    /// A machine whose bridge is connected to a broker.
    convenience init(_ kind: BusKind, _ broker: Mosquitto, realm: String = "home", _ lines: [String]) throws {
        try self.init(kind, ["broker = \(broker.address)", "realm = \(realm)"] + lines)
        try startBridge()
    }

    func configure(_ lines: [String]) throws {
        try folder.write(lines.joined(separator: "\n") + "\n", to: "bridge.conf")
    }

    /// The running bridge.
    var bridge: RunningCommand {
        get throws {
            guard let bridge = running.withLock({ $0 }) else { throw TestSupportError("There is no bridge.") }
            return bridge
        }
    }

    /// Starts the bridge, and returns once it reports that it is connected.
    ///
    /// - Parameters:
    ///   - prefix: what to put before the command to run it in another network.
    ///   - address: what leads to the bus, if something stands between.
    func startBridge(
        through prefix: [String] = [],
        at address: String? = nil,
        waitsFor text: String = "connected to"
    ) throws {
        let address = address ?? bus.address
        let command =
            try prefix + [productPath("notify-bridge"), "--address", address, "--config", "\(folder.path)/bridge.conf"]
        let bridge = try start(
            command[0],
            Array(command.dropFirst()),
            environment: ["XDG_STATE_HOME": folder.path],
            input: .null
        )
        running.withLock { $0 = bridge }
        try bridge.waitForErrorOutput(containing: text)
    }

    /// Ends the bridge by a signal, and returns its exit status.
    @discardableResult
    func endBridge(signal: Int32 = SIGTERM) throws -> Int32 {
        let bridge = try bridge
        bridge.send(signal: signal)
        running.withLock { $0 = nil }
        return try bridge.wait().status
    }

    /// The origin in the bridge's stamps.
    func origin() throws -> String {
        String(try readFile("\(folder.path)/notifybus/bridge-id").prefix(32))
    }

    /// Records from now on what is posted under these names or with these prefixes.
    func hear(_ names: [String] = [], prefixes: [String] = []) throws -> Recorder<String> {
        let heard = Recorder<String>()
        let names = try names.map { try NotifyName($0) }
        if !names.isEmpty {
            let observation = try center.addObserver(matching: .names(names), timeout: .seconds(25)) {
                heard.append($0.string)
            }
            observations.withLock { $0.append(observation) }
        }
        if !prefixes.isEmpty {
            let observation = try center.addObserver(
                matching: NotifySubject(prefixes: prefixes.map { NamePrefix($0) }),
                timeout: .seconds(25)
            ) {
                heard.append($0.string)
            }
            observations.withLock { $0.append(observation) }
        }
        return heard
    }

    /// The answer of `org.notifybus.Bridge1.Status`, as dbus-send prints it: key and value.
    func status() throws -> [String: String] {
        let result = try run(
            "dbus-send",
            [
                "--bus=\(bus.address)", "--print-reply=literal", "--dest=org.notifybus.Bridge1",
                "/org/notifybus/Bridge1", "org.notifybus.Bridge1.Status",
            ]
        )
        guard result.status == 0 else { throw TestSupportError("Status: \(result.errorOutput)") }
        // "dict entry( KEY variant TYPE VALUE )", with arbitrary whitespace.
        var entries: [String: String] = [:]
        for entry in result.output.split(separator: "dict entry(").dropFirst() {
            let fields = entry.split(whereSeparator: \.isWhitespace)
            guard fields.count > 2 else { continue }
            let value = fields.dropFirst(2).filter { $0 != ")" && $0 != "]" && $0 != "array" && $0 != "[" }
            entries[String(fields[0])] = value.joined(separator: " ")
        }
        return entries
    }

    /// Waits until the bridge is connected, or disconnected.
    func wait(connected: Bool, timeout: Duration = .seconds(120)) throws {
        let came = try waitUntil(timeout: timeout) { try status()["connected"] == "boolean \(connected)" }
        guard came else { throw TestSupportError("The bridge is \(connected ? "not " : "")connected: \(try status())") }
    }

    /// A number in the status.
    func figure(_ key: String) throws -> Int {
        let text = try status()[key] ?? ""
        guard let number = text.split(separator: " ").last.flatMap({ Int($0) }) else {
            throw TestSupportError("\(key) is no number: \(try status())")
        }
        return number
    }
}
