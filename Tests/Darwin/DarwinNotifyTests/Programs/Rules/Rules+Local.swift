// SPDX-License-Identifier: Apache-2.0

// Deliberately written the way people write it.
// swift-format-ignore-file: NeverForceUnwrap

import DarwinNotify
import Dispatch

extension Rules {
    static let local = CFNotificationCenterGetLocalCenter()

    private static func observeLocally(
        _ number: Int,
        _ name: String?,
        _ object: Int = 0,
        _ callback: @escaping CFNotificationCallback = { _, observer, name, _, _ in
            say("\(UInt(bitPattern: observer)) \(name!.rawValue as String)")
        }
    ) {
        let name = name.map { $0 as CFString }
        CFNotificationCenterAddObserver(local, observer(number), callback, name, observer(object), .drop)
    }

    private static func postLocally(_ name: String, _ object: Int = 0) {
        CFNotificationCenterPostNotification(local, CFNotificationName(name as CFString), observer(object), nil, false)
    }

    private static func removeLocally(_ number: Int, _ name: String?, _ object: Int = 0) {
        let name = name.map { CFNotificationName($0 as CFString) }
        CFNotificationCenterRemoveObserver(local, observer(number), name, observer(object))
    }

    /// What a callback receives, and that it has run when the post returns.
    static func localArguments() {
        observeLocally(7, "name", 0) { center, observer, name, object, userInfo in
            let answer = (userInfo as? [String: Int])?["answer"] ?? 0
            let pointers = "\(UInt(bitPattern: observer)) \(UInt(bitPattern: object))"
            say("\(center == Rules.local) \(name!.rawValue) \(pointers) \(answer)")
        }
        let name = CFNotificationName("name" as CFString)
        CFNotificationCenterPostNotification(local, name, observer(9), ["answer": 42] as CFDictionary, true)
        say("posted")
        CFNotificationCenterPostNotificationWithOptions(local, name, nil, nil, kCFNotificationDeliverImmediately)
        say("posted")
        // It has nothing to do with the other centers.
        observe("name", by: 1) { say("Darwin \($0)") }
        endWith()
        postLocally("end")
        post("name")
        post("end")
    }

    /// Who hears which posts, in the order of registration.
    static func localFilters() {
        observeLocally(1, "a")
        observeLocally(2, "a", 20)
        observeLocally(3, nil)
        observeLocally(4, nil, 20)
        observeLocally(5, "b", 20)
        observeLocally(1, "a")
        for (name, object) in [("a", 0), ("a", 20), ("a", 30), ("b", 20)] {
            say("\(name) by \(object)")
            postLocally(name, object)
        }
        finish()
    }

    static func localRemoval() {
        for number in 1...2 {
            for name in ["a", "b"] {
                observeLocally(number, name)
                observeLocally(number, name, 20)
            }
            observeLocally(number, nil)
        }
        func postBoth(_ title: String) {
            say(title)
            postLocally("a", 20)
            postLocally("b", 20)
        }
        removeLocally(1, "a", 20)
        postBoth("not 1 a by 20")
        removeLocally(1, "b")
        postBoth("not 1 b")
        removeLocally(2, nil, 20)
        postBoth("not 2 by 20")
        CFNotificationCenterRemoveEveryObserver(local, observer(1))
        postBoth("not 1")
        removeLocally(2, nil)
        postBoth("none")
        finish()
    }

    /// A callback removes its neighbours, adds another and posts.
    static func localChanges() {
        observeLocally(1, "a") { _, _, _, _, _ in
            say("1 begins")
            removeLocally(1, "a")
            removeLocally(2, "a")
            observeLocally(3, "a")
            postLocally("a")
            say("1 ends")
        }
        observeLocally(2, "a")
        observeLocally(4, "a")
        postLocally("a")
        finish()
    }

    /// The distributed center says once that it is silent.
    static func distributed() {
        CFNotificationCenter.onError = { say("\($0)") }
        let center = CFNotificationCenterGetDistributedCenter()
        say("the same \(center == CFNotificationCenterGetDistributedCenter()), another \(center != local)")
        let name = CFNotificationName("name" as CFString)
        for _ in 1...2 {
            CFNotificationCenterAddObserver(
                center,
                observer(1),
                { _, _, _, _, _ in say("heard") },
                name.rawValue,
                nil,
                .deliverImmediately
            )
            CFNotificationCenterPostNotification(center, name, nil, nil, true)
            CFNotificationCenterRemoveObserver(center, observer(1), name, nil)
        }
        endWith()
        post("name")
        post("end")
    }
}

private let title = DispatchSpecificKey<String>()

/// A function that says nothing about where it runs, as on Apple's systems.
private func calledOnThatQueue(
    _ center: CFNotificationCenter?,
    _ observer: UnsafeMutableRawPointer?,
    _ name: CFNotificationName?,
    _ object: UnsafeRawPointer?,
    _ userInfo: CFDictionary?
) {
    say("heard \(name!.rawValue as String) \(DispatchQueue.getSpecific(key: title) ?? "elsewhere")")
}

/// The thread that posts calls the observers.
func localThread() {
    let center = CFNotificationCenterGetLocalCenter()
    CFNotificationCenterAddObserver(center, nil, calledOnThatQueue, "a" as CFString, nil, .deliverImmediately)
    let queue = DispatchQueue(label: "com.example.posting")
    queue.setSpecific(key: title, value: "on the posting queue")
    queue.async {
        let name = CFNotificationName("a" as CFString)
        CFNotificationCenterPostNotification(CFNotificationCenterGetLocalCenter(), name, nil, nil, true)
        say("posted")
        finish()
    }
}
