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

    /// - Parameter sockets: the socket permissions, in Flatpak's format. With `session-bus` there is no proxy.
    public init(on bus: PrivateBus, sockets: String) throws {
        let folder = try makeFolder()
        self.folder = folder
        do {
            try write(
                "[Application]\nname=org.example.Sandboxed\n\n[Context]\nshared=network;ipc;\nsockets=\(sockets)\n",
                toFile: "\(folder)/info"
            )
            if sockets.split(separator: ";").contains("session-bus") {
                (address, proxy) = (bus.address, nil)
            } else {
                let socket = "\(folder)/bus"
                address = BusAddress.unix(path: socket)
                // It writes a byte there when it is listening, and exits when nobody reads it any more.
                let proxy = try TestSupport.start(
                    "xdg-dbus-proxy",
                    ["--fd=1", bus.address, socket, "--filter", "--log"]
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

    /// Starts a program in the sandbox, on the session bus that the sandbox allows.
    public func start(
        _ path: String,
        _ arguments: [String],
        input: CommandStream = .null
    ) throws -> RunningCommand {
        try TestSupport.start(
            "bwrap",
            Bubblewrap.arguments(files: ["/.flatpak-info": "\(folder)/info"]) + [path] + arguments,
            environment: ["DBUS_SESSION_BUS_ADDRESS": address, "NOTIFYBUS_ADDRESS": nil, "XDG_RUNTIME_DIR": nil],
            input: input
        )
    }

    /// Blocks until the proxy has withheld a message from the program.
    public func waitUntilHidden() throws {
        try proxy?.waitForOutput(containing: "*FILTERED IN*")
    }
}
