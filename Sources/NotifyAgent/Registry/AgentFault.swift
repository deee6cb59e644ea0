// SPDX-License-Identifier: Apache-2.0

import NotifyCore

// What the agent refuses a call with.
extension BusFault {
    static func invalidArguments(_ message: String) -> BusFault {
        BusFault(name: "org.freedesktop.DBus.Error.InvalidArgs", message: message)
    }

    /// Why what somebody wants to be held, or a name, can't be taken.
    static func refused(_ error: NotifyBusError) -> BusFault {
        guard error.code == .limitExceeded else { return .invalidArguments(error.description) }
        return BusFault(name: "org.freedesktop.DBus.Error.LimitsExceeded", message: error.description)
    }

    static func failed(_ message: String) -> BusFault {
        BusFault(name: "org.freedesktop.DBus.Error.Failed", message: message)
    }

    static func noSuchTarget(_ target: String) -> BusFault {
        BusFault(
            name: AgentInterface.ErrorName.noSuchTarget,
            message: "Nobody who observes is meant by '\(target)'; 'notify-lifecycle list' shows who does."
        )
    }

    static let notRegistered = BusFault(
        name: AgentInterface.ErrorName.notRegistered,
        message: "This connection has not registered."
    )

    static func notObserved(_ name: NotifyName) -> BusFault {
        BusFault(
            name: AgentInterface.ErrorName.notObserved,
            message: "No connection observes '\(name)', so it has no state."
        )
    }

    static func timedOut(_ seconds: Int64, _ stragglers: String) -> BusFault {
        BusFault(
            name: AgentInterface.ErrorName.timedOut,
            message: "The change was not in force after \(seconds) seconds for \(stragglers)."
        )
    }

    static func unknownMethod(_ call: BusCall) -> BusFault {
        BusFault(
            name: "org.freedesktop.DBus.Error.UnknownMethod",
            message: "There is no method '\(call.interface).\(call.member)' at \(call.path)."
        )
    }

    static func unknownProperty(_ name: String) -> BusFault {
        BusFault(name: "org.freedesktop.DBus.Error.UnknownProperty", message: "There is no property '\(name)'.")
    }
}

extension Subjects {
    /// Checks names and prefixes that came over the bus.
    init(namesOnBus names: [String], prefixes: [String]) throws(BusFault) {
        do throws(NotifyBusError) {
            try self.init(names: names, prefixes: prefixes)
        } catch {
            throw .refused(error)
        }
    }
}
