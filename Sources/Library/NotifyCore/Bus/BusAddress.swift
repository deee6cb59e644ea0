// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

extension NotifyCenter {
    /// Which bus a center uses. More kinds may be added.
    package struct Bus: Hashable, Sendable {
        package enum Kind: Hashable, Sendable {
            case session
            case system
            case address(String)
        }

        package let kind: Kind
        /// The bus itself, if it is inside this process.
        let process: ProcessBus?

        package init(kind: Kind) { self.init(kind: kind, process: nil) }

        init(kind: Kind, process: ProcessBus?) {
            self.kind = kind
            self.process = process
        }

        /// The session bus, as given by `DBUS_SESSION_BUS_ADDRESS`, or found at `$XDG_RUNTIME_DIR/bus`, or else at
        /// `/run/user/UID/bus`, if that belongs to the user.
        package static var session: Bus { Bus(kind: .session) }
        /// The system bus, as given by `DBUS_SYSTEM_BUS_ADDRESS` or found at its standard address.
        package static var system: Bus { Bus(kind: .system) }
        /// The bus at a D-Bus address, such as `unix:path=/run/user/1000/bus`.
        package static func address(_ address: String) -> Bus { Bus(kind: .address(address)) }
    }
}

extension NotifyCenter.Bus {
    /// The D-Bus address to connect to, determined as the specification says under "Well-known Message Bus Instances".
    ///
    /// The environment is ignored in a program that runs with the rights of another user.
    ///
    /// - Throws: ``NotifyBusError`` with the code `noBus` if there is no session bus, or the bus is inside this process.
    package func resolveAddress() throws(NotifyBusError) -> String {
        if process != nil { throw NotifyBusError(.noBus, "A bus inside the process has no address.") }
        switch kind {
        case .address(let address):
            return address
        case .system:
            return environment("DBUS_SYSTEM_BUS_ADDRESS") ?? "unix:path=/run/dbus/system_bus_socket"
        case .session:
            if let address = environment("DBUS_SESSION_BUS_ADDRESS") { return address }
            if let folder = environment("XDG_RUNTIME_DIR"), access(folder + "/bus", F_OK) == 0 {
                return "unix:path=" + escapeForAddress(folder + "/bus")
            }
            // From cron, ssh and sudo, where neither variable may be set: systemd's session bus is always there.
            let own = "/run/user/\(geteuid())/bus"
            if isOwnSocket(own) { return "unix:path=" + own }
            throw NotifyBusError(
                .noBus,
                "There is no session bus: DBUS_SESSION_BUS_ADDRESS is not set, and there is neither $XDG_RUNTIME_DIR/bus "
                    + "nor \(own). User \(geteuid()) must be logged in, or linger; see loginctl(1)."
            )
        }
    }

    /// Whether there is a socket that belongs to the user.
    private func isOwnSocket(_ path: String) -> Bool {
        var found = stat()
        return stat(path, &found) == 0 && found.st_mode & S_IFMT == S_IFSOCK && found.st_uid == geteuid()
    }

    /// Whether no bus listens at the address any more, so that the bus has ended.
    package var isDeserted: Bool {
        do throws(NotifyBusError) {
            _ = try Handshake(address: resolveAddress(), title: title)
            return false
        } catch {
            // Anything else, such as running out of descriptors, says nothing about the bus.
            let standard = "org.freedesktop.DBus.Error."
            return error.code == .noBus
                && [nil, standard + "FileNotFound", standard + "NoServer"].contains(error.busErrorName)
        }
    }

    /// Whether so many wait to be accepted by the bus that connecting to it would block. libdbus connects to the first
    /// address at which a bus listens.
    package var isCongested: Bool {
        guard let address = try? resolveAddress(), address.hasPrefix("unix:path=") else { return false }
        let path = address.dropFirst("unix:path=".count).prefix { $0 != "," && $0 != ";" }
        if path.contains("%") { return false }
        let socket = linux_connect_unix(String(path))
        if socket >= 0 { Glibc.close(socket) }
        return socket < 0 && errno == EAGAIN
    }

    /// How to refer to the bus in a sentence.
    var title: String {
        switch kind {
        case .session: "the session bus"
        case .system: "the system bus"
        case .address where process != nil: "the bus inside this process"
        case .address(let address): "the bus at '\(address)'"
        }
    }

    private func environment(_ name: String) -> String? {
        guard let value = linux_secure_getenv(name), value[0] != 0 else { return nil }
        return String(cString: value)
    }

    /// Bytes outside the optionally-escaped set are written as `%` and two hexadecimal digits.
    private func escapeForAddress(_ path: String) -> String {
        var escaped = ""
        for byte in path.utf8 {
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "/"),
                UInt8(ascii: "."):
                escaped.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                escaped += byte < 16 ? "%0" : "%"
                escaped += String(byte, radix: 16)
            }
        }
        return escaped
    }
}

extension NotifyCenter.Bus {
    /// The bus named by the environment variable `NOTIFYBUS_ADDRESS`: `session`, `system`, or a D-Bus address; nil if
    /// it is not set. The variable is ignored in a program that runs with the rights of another user.
    package static var inEnvironment: NotifyCenter.Bus? {
        guard let value = linux_secure_getenv("NOTIFYBUS_ADDRESS"), value[0] != 0 else { return nil }
        return switch String(cString: value) {
        case "session": .session
        case "system": .system
        case let address: .address(address)
        }
    }
}
