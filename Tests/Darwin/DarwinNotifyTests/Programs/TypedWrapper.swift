// SPDX-License-Identifier: Apache-2.0

// Deliberately written the way people write it.
// swift-format-ignore-file: NeverForceUnwrap

import DarwinNotify

#if WITH_FOUNDATION
    import Foundation
#endif

/// A typed center: an observer is an unretained object, which its callback receives with its type.
struct TypedCenter {
    static var darwinNotify: TypedCenter { TypedCenter(center: CFNotificationCenterGetDarwinNotifyCenter()) }

    let center: CFNotificationCenter

    private final class Entry {
        weak var observer: AnyObject?
        let call: (AnyObject, CFNotificationCenter?, CFNotificationName?) -> Void

        init<Observer: AnyObject>(
            _ observer: Observer,
            _ callback: @escaping (CFNotificationCenter?, Observer, CFNotificationName?) -> Void
        ) {
            self.observer = observer
            call = { object, center, name in
                if let observer = object as? Observer { callback(center, observer, name) }
            }
        }
    }

    nonisolated(unsafe) private static var entries: [ObjectIdentifier: [Entry]] = [:]

    func addObserver<Observer: AnyObject>(
        observer: Observer,
        name: CFNotificationName,
        suspensionBehavior: CFNotificationSuspensionBehavior,
        callback: @escaping (CFNotificationCenter?, Observer, CFNotificationName?) -> Void
    ) {
        let entry = Entry(observer, callback)
        TypedCenter.entries[ObjectIdentifier(observer), default: []].append(entry)
        CFNotificationCenterAddObserver(
            center,
            Unmanaged.passUnretained(entry).toOpaque(),
            { center, pointer, name, _, _ in
                let entry = Unmanaged<Entry>.fromOpaque(pointer!).takeUnretainedValue()
                if let observer = entry.observer { entry.call(observer, center, name) }
            },
            name.rawValue,
            nil,
            suspensionBehavior
        )
    }

    func removeObserver(observer: AnyObject, name: CFNotificationName? = nil) {
        for entry in TypedCenter.entries[ObjectIdentifier(observer)] ?? [] {
            CFNotificationCenterRemoveObserver(center, Unmanaged.passUnretained(entry).toOpaque(), name, nil)
        }
    }

    func postNotification(name: CFNotificationName, userInfo: CFDictionary = [:] as CFDictionary) {
        CFNotificationCenterPostNotification(center, name, nil, userInfo, true)
    }
}

private final class Screen {
    var brightness = 0
}

nonisolated(unsafe) private var screens: [Screen] = []

func typedWrapper() {
    let center = TypedCenter.darwinNotify
    let screen = Screen()
    let other = Screen()
    screens = [screen, other]
    let brighter = CFNotificationName("com.example.brighter" as CFString)
    let report = CFNotificationName("com.example.report" as CFString)
    for each in screens {
        center.addObserver(observer: each, name: brighter, suspensionBehavior: .hold) { _, screen, _ in
            screen.brightness += 1
        }
    }
    center.addObserver(observer: screen, name: report, suspensionBehavior: .hold) { center, screen, name in
        say("\(name!.rawValue as String) \(screen.brightness) \(screens[1].brightness)")
        finish()
    }
    center.removeObserver(observer: other, name: brighter)
    center.postNotification(name: brighter)
    center.postNotification(name: brighter)
    center.postNotification(name: report)
}
