// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// Follows properties of a service's objects.
final class PropertyClient: ServiceClient {
    struct Object: Hashable, Sendable {
        let path: String
        let interface: String
    }

    typealias Values = [Object: [String: BusValue]]

    enum News: Sendable {
        /// All properties, at first and after each change.
        case found(Values)
        /// Another signal that was wanted.
        case signal(BusSignal)
        case away(String)
        /// It is there, but does not tell them.
        case silent(String)
    }

    let service: FollowedService
    private let objects: [Object]
    private let tell: (News) -> Void
    private var current: Service?
    private var values: Values = [:]
    /// What is being asked for, and whether it has changed since.
    private var asked: [Object: Bool] = [:]

    /// - Parameters:
    ///   - signals: what else is wanted, as in `FollowedService`.
    ///   - tell: called with what is found.
    init(
        _ name: String,
        _ title: String,
        _ objects: [Object],
        signals: [String] = [],
        tell: @escaping (News) -> Void
    ) {
        let rules = objects.map { object in
            "interface='\(PropertyChange.interface)',member='PropertiesChanged',path='\(object.path)',"
                + "arg0='\(object.interface)'"
        }
        service = FollowedService(name: name, title: title, signals: rules + signals, isActivated: true)
        self.objects = objects
        self.tell = tell
    }

    func serviceHasCome(_ service: Service) {
        current = service
        (values, asked) = ([:], [:])
        for object in objects { ask(object) }
    }

    func serviceIsAway(_ reason: String) {
        current = nil
        values = [:]
        tell(.away(reason))
    }

    func serviceIsSilent(_ reason: String) {
        current = nil
        values = [:]
        tell(.silent(reason))
    }

    func handle(_ signal: BusSignal) {
        guard let change = PropertyChange(signal) else { return tell(.signal(signal)) }
        let object = Object(path: signal.path, interface: change.interface)
        // The answer that is under way was given after this.
        guard objects.contains(object), values[object] != nil else { return }
        if !change.invalidated.isEmpty { ask(object) }
        values[object]?.merge(change.values) { $1 }
        report()
    }

    private func ask(_ object: Object) {
        guard let current else { return }
        guard asked[object] == nil else { return asked[object] = true }
        asked[object] = false
        current.properties(of: object.interface, at: object.path) { [self] answer in
            let hasChanged = asked.removeValue(forKey: object) == true
            guard let answer else {
                tell(.silent("\(service.title) did not report its properties"))
                return current.comeAgain()
            }
            values[object] = answer
            if hasChanged { ask(object) }
            report()
        }
    }

    private func report() {
        if values.count == objects.count { tell(.found(values)) }
    }
}
