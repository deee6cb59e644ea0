// SPDX-License-Identifier: Apache-2.0

import NotifyBus

/// A name that is observed, and its place on the bus.
///
/// `@unchecked Sendable`: the variables are touched only with the lock of the `ObserverTable` held that has it.
final class ObservedName: @unchecked Sendable {
    private enum Link {
        /// Nobody has tried yet.
        case untried
        case opening
        /// Somebody has tried, and it is to be tried again.
        case missing(NotifyBusError)
        case open(NotifyCenter.Observation)
        /// Nobody wants it any more.
        case closed
    }

    let name: NotifyName
    var registrations = CFRegistrationList()
    private var link = Link.untried

    init(_ name: NotifyName) {
        self.name = name
    }

    var isMissing: Bool {
        if case .missing = link { true } else { false }
    }

    /// How the last attempt has ended; nil while one goes on.
    var outcome: Result<Void, NotifyBusError>? {
        switch link {
        case .untried, .opening: nil
        case .missing(let error): .failure(error)
        case .open, .closed: .success(())
        }
    }

    /// - Returns: whether the caller is to observe the name on the bus.
    func beginOpening() -> Bool {
        switch link {
        case .untried, .missing:
            link = .opening
            return true
        case .opening, .open, .closed:
            return false
        }
    }

    /// - Returns: the observation, if nobody wants it any more.
    func endOpening(_ result: Result<NotifyCenter.Observation, NotifyBusError>) -> NotifyCenter.Observation? {
        guard case .opening = link else { return try? result.get() }
        switch result {
        case .success(let observation): link = .open(observation)
        case .failure(let error): link = .missing(error)
        }
        return nil
    }

    /// - Returns: the observation that nobody wants any more.
    func close() -> NotifyCenter.Observation? {
        defer { link = .closed }
        if case .open(let observation) = link { return observation }
        return nil
    }
}
