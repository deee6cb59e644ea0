// SPDX-License-Identifier: Apache-2.0

import NotifyCore
import Synchronization

/// The center inside this program: a post calls its observers on the posting thread, before it returns.
final class LocalBackend: CenterBackend {
    private final class Entry: Sendable {
        let observer: CFObserver
        /// The bits of the object whose posts it hears; 0 for all.
        let object: UInt
        /// Numbers the registrations in the order in which they were added.
        let number: Int
        let isRemoved = Atomic(false)

        init(_ observer: CFObserver, _ object: UInt, _ number: Int) {
            self.observer = observer
            self.object = object
            self.number = number
        }
    }

    private struct State {
        var lastNumber = 0
        var named: [CFString: [Entry]] = [:]
        /// Those that hear all names.
        var unnamed: [Entry] = []
    }

    private let state = Monitor(State())

    func add(_ observer: CFObserver, _ name: CFString?, _ object: UInt) -> CFNotificationError.Cause? {
        state.withLock { state in
            state.lastNumber += 1
            let entry = Entry(observer, object, state.lastNumber)
            if let name { state.named[name, default: []].append(entry) } else { state.unnamed.append(entry) }
        }
        return nil
    }

    func remove(_ observer: UInt, _ name: CFString?, _ object: UInt) {
        state.withLock { state in
            func isMeant(_ entry: Entry) -> Bool {
                guard entry.observer.pointer == observer, object == 0 || entry.object == object else { return false }
                // A post that is under way on another thread, or further up on this one, must not call it any more.
                entry.isRemoved.store(true, ordering: .releasing)
                return true
            }
            if name == nil { state.unnamed.removeAll(where: isMeant) }
            for name in name.map({ [$0] }) ?? Array(state.named.keys) {
                state.named[name]?.removeAll(where: isMeant)
                if state.named[name]?.isEmpty == true { state.named[name] = nil }
            }
        }
    }

    func post(
        _ name: CFNotificationName,
        _ object: UnsafeRawPointer?,
        _ userInfo: CFDictionary?
    ) -> CFNotificationError.Cause? {
        let posting = UInt(bitPattern: object)
        let entries = state.withLock { state in
            let named = state.named[name.rawValue] ?? []
            let all = state.unnamed.isEmpty ? named : (named + state.unnamed).sorted { $0.number < $1.number }
            return all.filter { $0.object == 0 || $0.object == posting }
        }
        // Without the lock, as a callback may post, add and remove.
        for entry in entries where !entry.isRemoved.load(ordering: .acquiring) {
            entry.observer.callHere(.local, name, object, userInfo)
        }
        return nil
    }
}

/// The distributed center, which Linux does not have: nothing is heard or posted, and that is reported once.
final class DistributedBackend: CenterBackend {
    private let hasTold = Atomic(false)

    private func tell() -> CFNotificationError.Cause? {
        hasTold.exchange(true, ordering: .relaxed) ? nil : .noDistributedCenter
    }

    func add(_ observer: CFObserver, _ name: CFString?, _ object: UInt) -> CFNotificationError.Cause? { tell() }

    func remove(_ observer: UInt, _ name: CFString?, _ object: UInt) {}

    func post(
        _ name: CFNotificationName,
        _ object: UnsafeRawPointer?,
        _ userInfo: CFDictionary?
    ) -> CFNotificationError.Cause? { tell() }
}
