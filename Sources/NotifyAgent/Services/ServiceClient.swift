// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// Somebody who follows a service on a bus: is told when it comes and goes, and hears its signals.
protocol ServiceClient: AnyObject {
    var service: FollowedService { get }
    /// A connection owns the service's name.
    func serviceHasCome(_ service: Service)
    /// The service has sent a signal.
    func handle(_ signal: BusSignal)
    /// Nobody owns the name, for this reason.
    func serviceIsAway(_ reason: String)
}

/// What there is to know in advance of a service that is followed.
struct FollowedService: Sendable {
    /// Its well-known name.
    let name: String
    /// What people call it.
    let title: String
    /// Which of its signals are wanted: the rest of match rules, behind the sender.
    let signals: [String]
    /// Whether the bus is to start it.
    var isActivated = false
}

/// A service, for as long as one connection owns its name.
final class Service {
    /// The unique name of that connection, which nobody else can have.
    let owner: String
    private(set) var isThere = true
    private let link: BusLink

    init(owner: String, on link: BusLink) { (self.owner, self.link) = (owner, link) }

    func leave() { isThere = false }

    /// Calls a method.
    ///
    /// - Parameter completion: called with the answer, unless the service has gone meanwhile.
    func call(
        _ member: String,
        of interface: String,
        at path: String,
        _ arguments: [BusValue] = [],
        then completion: @escaping (BusAnswer) -> Void
    ) {
        link.call(owner, path: path, interface: interface, member: member, arguments) { [self] answer in
            if isThere { return completion(answer) }
            (try? answer.get())?.closeDescriptors()
        }
    }

    /// Asks for all properties of an interface.
    ///
    /// - Parameter completion: called with nil if it did not tell.
    func properties(
        of interface: String,
        at path: String,
        then completion: @escaping ([String: BusValue]?) -> Void
    ) {
        call("GetAll", of: PropertyChange.interface, at: path, [.string(interface)]) { answer in
            let values = try? answer.get()
            values?.closeDescriptors()
            completion(values?.first?.dictionary)
        }
    }
}

/// The signal PropertiesChanged. See the D-Bus specification, "Standard Interfaces".
struct PropertyChange {
    static let interface = "org.freedesktop.DBus.Properties"

    /// Whose properties they are.
    let interface: String
    let values: [String: BusValue]
    /// Those that have changed without saying how.
    let invalidated: [String]

    init?(_ signal: BusSignal) {
        guard signal.interface == PropertyChange.interface, signal.member == "PropertiesChanged",
            signal.arguments.count == 3, let interface = signal.arguments[0].string,
            let values = signal.arguments[1].dictionary, let invalidated = signal.arguments[2].strings
        else { return nil }
        self.interface = interface
        self.values = values
        self.invalidated = invalidated
    }
}
