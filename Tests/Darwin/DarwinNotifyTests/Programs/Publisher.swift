// SPDX-License-Identifier: Apache-2.0

// Deliberately written the way people write it.
// swift-format-ignore-file: NeverForceUnwrap

import DarwinNotify

#if WITH_FOUNDATION
    import Foundation
#endif

/// A hand-made publisher in the style of Combine: subscribers come and go, with one registration.
final class DarwinPublisher: @unchecked Sendable {
    final class Subscription {
        private let end: () -> Void
        init(_ end: @escaping () -> Void) { self.end = end }
        func cancel() { end() }
    }

    private let name: CFNotificationName
    private var subscribers: [Int: (CFNotificationName) -> Void] = [:]
    private var next = 0

    init(for name: CFNotificationName) {
        self.name = name
    }

    private var context: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

    func sink(_ receive: @escaping (CFNotificationName) -> Void) -> Subscription {
        if subscribers.isEmpty { start() }
        next += 1
        let number = next
        subscribers[number] = receive
        return Subscription { [self] in
            subscribers[number] = nil
            if subscribers.isEmpty { stop() }
        }
    }

    private func start() {
        CFNotificationCenterAddObserver(
            CFNotificationCenterGetDarwinNotifyCenter(),
            context,
            { _, context, name, _, _ in
                let publisher = Unmanaged<DarwinPublisher>.fromOpaque(context!).takeUnretainedValue()
                for (_, receive) in publisher.subscribers.sorted(by: { $0.key < $1.key }) { receive(name!) }
            },
            name.rawValue,
            nil,
            .drop
        )
    }

    private func stop() {
        CFNotificationCenterRemoveObserver(CFNotificationCenterGetDarwinNotifyCenter(), context, name, nil)
    }
}

extension CFNotificationName {
    static let stationChanged = CFNotificationName("com.example.station.changed" as CFString)
    static let switchedOff = CFNotificationName("com.example.switched.off" as CFString)
}

nonisolated(unsafe) private var publishers: [DarwinPublisher] = []
nonisolated(unsafe) private var subscriptions: [DarwinPublisher.Subscription] = []

func publisher() {
    let station = DarwinPublisher(for: .stationChanged)
    let off = DarwinPublisher(for: .switchedOff)
    publishers = [station, off]
    subscriptions = [
        station.sink { say("first \($0.rawValue)") },
        station.sink { say("second \($0.rawValue)") },
        off.sink { _ in finish() },
    ]
    subscriptions[0].cancel()
    let center = CFNotificationCenterGetDarwinNotifyCenter()
    CFNotificationCenterPostNotification(center, .stationChanged, nil, nil, true)
    CFNotificationCenterPostNotification(center, .switchedOff, nil, nil, true)
}
