// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore

// The faults with which the agent refuses calls.
extension BusFault {
    init(_ refusal: Refusal) {
        let name =
            switch refusal.kind {
            case .invalidArguments: "org.freedesktop.DBus.Error.InvalidArgs"
            case .accessDenied: "org.freedesktop.DBus.Error.AccessDenied"
            case .limitExceeded: "org.freedesktop.DBus.Error.LimitsExceeded"
            case .failed: "org.freedesktop.DBus.Error.Failed"
            case .noSuchTarget: AgentInterface.ErrorName.noSuchTarget
            case .notRegistered: AgentInterface.ErrorName.notRegistered
            case .notObserved: AgentInterface.ErrorName.notObserved
            case .timedOut: AgentInterface.ErrorName.timedOut
            }
        self.init(name: name, message: refusal.message)
    }

    static func invalidArguments(_ message: String) -> BusFault { BusFault(Refusal(.invalidArguments, message)) }
    static func failed(_ message: String) -> BusFault { BusFault(Refusal(.failed, message)) }
    static func limitExceeded(_ message: String) -> BusFault { BusFault(Refusal(.limitExceeded, message)) }

    /// Why what a caller wants to observe, or a name, is not acceptable.
    static func refused(_ error: NotifyBusError) -> BusFault {
        error.code == .limitExceeded ? .limitExceeded(error.description) : .invalidArguments(error.description)
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
    /// Checks names and prefixes received over the bus.
    init(namesOnBus names: [String], prefixes: [String]) throws(BusFault) {
        do throws(NotifyBusError) {
            try self.init(names: names, prefixes: prefixes)
        } catch {
            throw .refused(error)
        }
    }
}
