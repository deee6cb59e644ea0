// SPDX-License-Identifier: Apache-2.0

import Glibc

/// What a program sees in a Flatpak: a `/.flatpak-info`, through bubblewrap, and xdg-dbus-proxy in front of the bus.
public final class FlatpakSandbox: Sendable {
    /// Why it can't run here, or nil.
    public static let obstacle: String? =
        Bubblewrap.obstacle ?? (isInstalled("xdg-dbus-proxy") ? nil : "xdg-dbus-proxy is not installed")

    private let folder: String
    private let address: String
    private let proxy: RunningCommand?

    /// - Parameters:
    ///   - sockets: the permissions for sockets, as Flatpak writes them. With `session-bus` there is no proxy.
    ///   - names: the names on the bus that it may talk to, as `--talk-name` gives them.
    public init(on bus: PrivateBus, sockets: String = "x11;wayland;", talkingTo names: [String] = []) throws {
        let folder = try makeFolder()
        self.folder = folder
        do {
            try save(
                "[Application]\nname=org.example.Sandboxed\n\n[Context]\nshared=network;ipc;\nsockets=\(sockets)\n"
                    + (names.isEmpty ? "" : "\n[Session Bus Policy]\n" + names.map { "\($0)=talk\n" }.joined()),
                toFile: "\(folder)/info"
            )
            if sockets.split(separator: ";").contains("session-bus") {
                (address, proxy) = (bus.address, nil)
            } else {
                let socket = "\(folder)/bus"
                address = BusAddress.unix(path: socket)
                // It writes a byte there when it is listening, and exits when no process reads it any more.
                let proxy = try TestSupport.start(
                    "bwrap",
                    // As Flatpak does it, so that others know the proxy for a part of the sandbox.
                    ["--bind", folder, folder].merged(
                        into: Bubblewrap.arguments(files: ["/.flatpak-info": "\(folder)/info"])
                    )
                        + ["xdg-dbus-proxy", "--fd=1", bus.address, socket, "--filter", "--log"]
                        + names.map { "--talk=\($0)" }
                )
                try proxy.waitForOutput(containing: "x")
                self.proxy = proxy
            }
        } catch {
            removeFolder(folder)
            throw error
        }
    }

    deinit {
        removeFolder(folder)
    }

    /// Ends the proxy, and with it all connections from the sandbox.
    public func end() {
        proxy?.send(signal: SIGKILL)
    }

    /// Starts a program in the sandbox, whose session bus is what the sandbox lets in.
    public func start(
        _ path: String,
        _ arguments: [String],
        environment: [String: String?] = [:],
        input: CommandStream = .null
    ) throws -> RunningCommand {
        try TestSupport.start(
            "bwrap",
            Bubblewrap.arguments(files: ["/.flatpak-info": "\(folder)/info"]) + [path] + arguments,
            environment: ["DBUS_SESSION_BUS_ADDRESS": address, "NOTIFYBUS_ADDRESS": nil, "XDG_RUNTIME_DIR": nil]
                .merging(environment) { $1 },
            input: input
        )
    }

    /// Where programs in the sandbox find the session bus; others may go that way too.
    public var busAddress: String { address }

    /// Blocks until the proxy has kept a message from the program.
    public func waitUntilHidden() throws {
        try proxy?.waitForOutput(containing: "*FILTERED IN*")
    }
}

extension [String] {
    /// Puts options behind those of a call of bwrap, in front of the `--` at its end.
    fileprivate func merged(into arguments: [String]) -> [String] { Array(arguments.dropLast()) + self + ["--"] }
}
