// SPDX-License-Identifier: Apache-2.0

import Dispatch
import NotifyCore
import NotifyTokens

/// The Darwin notify center: as on Darwin, it stands on notify(3), where registrations of one name share an
/// observation.
final class DarwinBackend: CenterBackend {
    private struct State {
        /// Each observer's registrations of each name. Those without an observer can't be removed.
        var tokens: [UInt: [NotifyName: [Int32]]] = [:]
        /// Whether it has been reported that posts can't be heard in this sandbox.
        var hasToldObstacle = false
    }

    private let state = Monitor(State())

    /// Adds a registration, and waits until the bus has confirmed it or is known to be missing.
    func add(_ observer: CFObserver, _ text: CFString?, _ object: UInt) -> CFNotificationError.Cause? {
        guard let text else { return .missing("a name") }
        let cfName = CFNotificationName(text)
        do throws(NotifyBusError) {
            let name = try NotifyName(text)
            let (token, delay) = try TokenEngine.shared.observe(
                name,
                { registration in
                    DispatchQueue.main.async {
                        // The main queue is the main actor, whatever thread it runs on.
                        registration.run { MainActor.assumeIsolated { observer.call(.darwin, cfName) } }
                    }
                },
                failed: { Reporter.report(.refused(cfName, $0), by: "CFNotificationCenterAddObserver") }
            )
            if observer.pointer != 0 {
                state.withLock { $0.tokens[observer.pointer, default: [:]][name, default: []].append(token) }
            }
            if let delay { return .delayed(cfName, delay) }
            return obstacle(to: name).map { .limited(cfName, reason: $0) }
        } catch {
            return .refused(cfName, error)
        }
    }

    /// Why the name can't be heard; reported once per process.
    private func obstacle(to name: NotifyName) -> String? {
        guard let reason = DarwinCenter.shared.obstacle(toHearing: name) else { return nil }
        return state.withLock { state in
            defer { state.hasToldObstacle = true }
            return state.hasToldObstacle ? nil : reason
        }
    }

    func remove(_ observer: UInt, _ text: CFString?, _ object: UInt) {
        // An invalid name was never registered.
        let only: NotifyName? = text.flatMap { try? NotifyName($0) }
        if text != nil, only == nil { return }
        let tokens: [Int32] = state.withLock { state in
            guard let only else { return state.tokens.removeValue(forKey: observer)?.values.flatMap { $0 } ?? [] }
            defer { if state.tokens[observer]?.isEmpty == true { state.tokens[observer] = nil } }
            return state.tokens[observer]?.removeValue(forKey: only) ?? []
        }
        for token in tokens { try? TokenEngine.shared.cancel(token) }
    }

    func post(
        _ name: CFNotificationName,
        _ object: UnsafeRawPointer?,
        _ userInfo: CFDictionary?
    ) -> CFNotificationError.Cause? {
        do throws(NotifyBusError) {
            try DarwinCenter.shared.postOnceConnected(NotifyName(name.rawValue))
            return nil
        } catch {
            return .refused(name, error)
        }
    }
}
