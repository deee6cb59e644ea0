// SPDX-License-Identifier: Apache-2.0

import DarwinNotify
import NotifyBus

extension Rules {
    /// Every failure is reported to the handler.
    static func errors() {
        CFNotificationCenter.onError = {
            say("\($0.function) \($0.code?.description ?? "nil") \($0.name?.rawValue ?? "")")
        }
        failEverywhere()
        endWith()
        post("end")
    }

    /// Without a handler it is printed on standard error, once for each kind.
    static func errorsWithoutHandler() {
        for _ in 1...3 { failEverywhere() }
        endWith()
        post("end")
    }

    /// A sandbox may hide posts, which is reported once. The program's own are still heard.
    static func reach() {
        CFNotificationCenter.onError = {
            say("\($0.function) \($0.code?.description ?? "nil") \($0.name?.rawValue ?? "")")
        }
        observe("self.end", by: 4) { _ in
            say("end")
            finish()
        }
        for number in 1...3 { observe("name", by: number) { say("own \($0)") } }
        observe("other", by: 1) { _ in }
        post("name")
        post("self.end")
    }

    private static func failEverywhere() {
        post("")
        post(String(repeating: "x", count: 512))
        observe("nul \0 inside", by: 1) { _ in }
        CFNotificationCenterPostNotification(center, nil, nil, nil, true)
        CFNotificationCenterRemoveObserver(center, nil, nil, nil)
        CFNotificationCenterRemoveEveryObserver(nil, observer(1))
    }
}
