// SPDX-License-Identifier: Apache-2.0

package import NotifyNames

/// An error reply to a call.
package struct BusFault: Error, Sendable {
    package let name: String
    package let message: String

    package init(name: String, message: String) {
        self.name = name
        self.message = message
    }

    private static let denial = "org.freedesktop.DBus.Error.AccessDenied"

    package static func accessDenied(_ message: String) -> BusFault { BusFault(name: denial, message: message) }

    /// Whether the caller may not do this.
    package var saysDenied: Bool { name == BusFault.denial }

    package static let noReply = "org.freedesktop.DBus.Error.NoReply"

    /// Whether the fault means that the other side of a call has gone.
    package var saysGone: Bool {
        switch name {
        case BusFault.unknownService, "org.freedesktop.DBus.Error.NameHasNoOwner",
            BusFault.noReply, "org.freedesktop.DBus.Error.Disconnected":
            true
        default: false
        }
    }

    /// Whether the other side is not there, and the bus does not know how to start it.
    package var saysUnknownService: Bool { name == BusFault.unknownService }

    private static let unknownService = "org.freedesktop.DBus.Error.ServiceUnknown"

    /// Whether the bus, or systemd on its behalf, could not start the other side of a call: its unit is masked or not
    /// found, its program failed, or it took too long.
    package var saysNotStarted: Bool {
        name.hasPrefix("org.freedesktop.DBus.Error.Spawn.") || name.hasPrefix("org.freedesktop.systemd1.")
            || name == "org.freedesktop.DBus.Error.TimedOut"
    }

    package static func noOwner(of name: String) -> BusFault {
        BusFault(name: "org.freedesktop.DBus.Error.NameHasNoOwner", message: "The name '\(name)' has no owner.")
    }

    /// Whether the call had no reply when the connection was lost.
    package var isOfLostConnection: Bool { name == BusFault.lost.name }

    /// Whether the called peer has not answered in time. No error by this name comes from a bus.
    package var saysSilent: Bool { name == BusFault.silence }

    private static let silence = "org.notifybus.Error.NoAnswer"

    package static func noAnswer(within milliseconds: Int64) -> BusFault {
        BusFault(name: silence, message: "There was no answer within \(milliseconds.asSeconds).")
    }

    /// What it means if the bus has refused something.
    package func error(of code: NotifyBusError.Code, by title: String) -> NotifyBusError {
        let reason = message.isEmpty ? "it gave no reason" : message
        return NotifyBusError(code, "The request was refused by \(title): \(reason).", busErrorName: name)
    }

    package static let lost = BusFault(
        name: "org.freedesktop.DBus.Error.Disconnected",
        message: "The connection is closed."
    )
}

extension BusMessage {
    /// What an error reply says.
    package var fault: BusFault {
        BusFault(
            name: errorName.map { String(cString: $0) } ?? "org.freedesktop.DBus.Error.Failed",
            message: text.map { String(decoding: $0, as: UTF8.self) } ?? ""
        )
    }
}

extension Int64 {
    /// A time in milliseconds, as people write it.
    package var asSeconds: String { self % 1_000 == 0 ? "\(self / 1_000) s" : "\(self) ms" }
}
