// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// One registration: an observer and its callback.
final class CFRegistration: Sendable {
    /// The bits of the observer's pointer, which is never dereferenced here; 0 for nil.
    let observer: UInt
    private let callback: CFNotificationCallback
    private let removed = Atomic(false)

    init(_ observer: UnsafeRawPointer?, _ callback: @escaping CFNotificationCallback) {
        self.observer = UInt(bitPattern: observer)
        self.callback = callback
    }

    var isRemoved: Bool { removed.load(ordering: .acquiring) }

    func remove() {
        removed.store(true, ordering: .releasing)
    }

    /// Calls the callback, unless the registration was removed.
    @MainActor func deliver(_ name: CFNotificationName) {
        if isRemoved { return }
        callback(.darwin, UnsafeMutableRawPointer(bitPattern: observer), name, nil, nil)
    }
}

/// The registrations of one name, in the order in which they were added.
struct CFRegistrationList {
    /// May contain some that have been removed.
    private(set) var all: [CFRegistration] = []
    /// Excludes those without an observer, which can't be removed.
    private var byObserver: [UInt: [CFRegistration]] = [:]
    private var removedCount = 0

    var isEmpty: Bool { all.count == removedCount }

    mutating func append(_ registration: CFRegistration) {
        all.append(registration)
        if registration.observer != 0 { byObserver[registration.observer, default: []].append(registration) }
    }

    /// Removes an observer's registrations. The cost does not depend on how many others there are: removed ones are
    /// swept out once they are the majority.
    mutating func remove(_ observer: UInt) {
        guard let registrations = byObserver.removeValue(forKey: observer) else { return }
        for registration in registrations { registration.remove() }
        removedCount += registrations.count
        if removedCount * 2 > all.count {
            all.removeAll { $0.isRemoved }
            removedCount = 0
        }
    }
}
