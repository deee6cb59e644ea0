// SPDX-License-Identifier: Apache-2.0

import DarwinNotify
import Dispatch

extension Rules {
    /// Two observers of two names each, which print what they hear.
    private static func twoOfTwo() {
        for number in 1...2 {
            for name in ["a", "b"] { observe(name, by: number) { say("\(number) \($0)") } }
        }
        endWith()
    }

    private static func postAll() {
        for name in ["a", "b", "end"] { post(name) }
    }

    static func removalByName() {
        twoOfTwo()
        // The object is ignored here too.
        CFNotificationCenterRemoveObserver(center, observer(1), CFNotificationName("a" as CFString), observer(9))
        remove(2, "never observed")
        remove(3, "a")
        postAll()
    }

    static func removalOfAllNames() {
        twoOfTwo()
        remove(1, nil)
        postAll()
    }

    static func removalOfEvery() {
        twoOfTwo()
        CFNotificationCenterRemoveEveryObserver(center, observer(2))
        postAll()
    }

    /// One removal removes all of them, and later additions count again.
    static func removalOfDuplicates() {
        for _ in 1...3 { observe("a", by: 1) { say("before \($0)") } }
        remove(1, "a")
        observe("a", by: 1) { say("after \($0)") }
        endWith()
        postAll()
    }

    /// The post is already in the main queue when its observer is removed.
    static func removedWhileWaiting() {
        twoOfTwo()
        post("a")
        settle()
        remove(1, "a")
        post("b")
        settle()
        CFNotificationCenterRemoveEveryObserver(center, observer(1))
        post("end")
    }

    /// A callback removes itself and its neighbour, and adds another.
    static func changesInsideCallback() {
        observe("a", by: 1) { name in
            say("1 \(name)")
            remove(1, "a")
            remove(2, "a")
            observe("c", by: 3) { say("3 \($0)") }
            for name in ["a", "c", "end"] { post(name) }
        }
        observe("a", by: 2) { say("2 \($0)") }
        observe("a", by: 4) { say("4 \($0)") }
        endWith()
        post("a")
    }

    /// A removal on another thread does not wait for a running callback.
    static func removalElsewhere() {
        observe("a", by: 1) { _ in
            let removed = DispatchSemaphore(value: 0)
            DispatchQueue.global().async {
                let observer = UnsafeRawPointer(bitPattern: 1)
                CFNotificationCenterRemoveEveryObserver(CFNotificationCenterGetDarwinNotifyCenter(), observer)
                removed.signal()
            }
            say(removed.wait(timeout: .now() + 120) == .success ? "removed meanwhile" : "waited")
            post("a")
            post("end")
        }
        endWith()
        post("a")
    }
}
