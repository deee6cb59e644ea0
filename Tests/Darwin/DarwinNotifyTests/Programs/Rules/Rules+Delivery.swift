// SPDX-License-Identifier: Apache-2.0

import DarwinNotify
import Dispatch
import Glibc
import NotifyBus

#if WITH_FOUNDATION
    import Foundation
#endif

extension Rules {
    /// Callbacks run on the main queue, wherever a post comes from; in a run loop that is on the main thread.
    static func mainQueue() {
        observe("a", by: 1) { _ in
            dispatchPrecondition(condition: .onQueue(.main))
            #if WITH_FOUNDATION
                say("main \(Thread.isMainThread)")
            #else
                say("main true")
            #endif
        }
        endWith()
        DispatchQueue.global().async {
            post("a")
            post("end")
        }
    }

    /// As many registrations of one name by one observer as the second argument says; all are called for one post.
    static func manyDuplicates() {
        let count = Int(CommandLine.arguments[2]) ?? 0
        var calls = 0
        for _ in 1...count { observe("a", by: 1) { _ in calls += 1 } }
        endWith { "\(calls)" }
        post("a")
        settle()
        DispatchQueue.main.async {
            remove(1, "a")
            post("a")
            post("end")
        }
    }

    /// As many observers of one name, which are removed one by one.
    static func manyObservers() {
        let count = Int(CommandLine.arguments[2]) ?? 0
        var calls = 0
        for number in 1...count { observe("a", by: number) { _ in calls += 1 } }
        endWith { "\(calls)" }
        post("a")
        settle()
        DispatchQueue.main.async {
            for number in 2...count { remove(number, "a") }
            post("a")
            post("end")
        }
    }

    /// As many names, each observed once, all removed with their observer.
    static func manyNames() {
        let count = Int(CommandLine.arguments[2]) ?? 0
        var calls = 0
        for number in 1...count { observe("name.\(number)", by: 1) { _ in calls += 1 } }
        endWith { "\(calls)" }
        for number in 1...count { post("name.\(number)") }
        settle()
        DispatchQueue.main.async {
            remove(1, nil)
            for number in 1...count { post("name.\(number)") }
            post("end")
        }
    }

    /// Four threads add, post and remove, while the main queue delivers.
    static func churn() {
        let count = Int(CommandLine.arguments[2]) ?? 0
        let group = DispatchGroup()
        endWith()
        for thread in 1...4 {
            DispatchQueue.global().async(group: group) {
                let center = CFNotificationCenterGetDarwinNotifyCenter()
                for turn in 1...count {
                    let observer = UnsafeRawPointer(bitPattern: thread * 8 + turn % 3)
                    let name = "name.\(turn % 5)"
                    CFNotificationCenterAddObserver(center, observer, { _, _, _, _, _ in }, name, nil, .drop)
                    if turn % 4 == 0 { post(name) }
                    if turn % 7 == 0 {
                        CFNotificationCenterRemoveEveryObserver(center, observer)
                    } else {
                        CFNotificationCenterRemoveObserver(center, observer, CFNotificationName(name), nil)
                    }
                }
            }
        }
        group.notify(queue: .main) { post("end") }
    }

    /// Observes two names until it is terminated; the reply shows that everything before has arrived.
    static func endlessObserver() {
        observe("a", by: 1) { say($0) }
        observe("b", by: 1) { say($0) }
        say("ready")
    }

    /// What people call to serve the main queue, with Foundation and without.
    static func runLoop() {
        let isDone = DispatchSemaphore(value: 0)
        // Elsewhere there is nothing to run.
        DispatchQueue.global().async {
            CFRunLoopRun()
            isDone.signal()
        }
        isDone.wait()
        endWith()
        post("end")
        CFRunLoopRun()
    }

    /// What is in the main queue when a callback runs a run loop, which only Foundation has.
    static func nestedRunLoop() {
        observe("a", by: 1) { _ in
            DispatchQueue.main.async {
                say("the next one")
                finish()
            }
            #if WITH_FOUNDATION
                _ = RunLoop.main.run(mode: .default, before: Date(timeIntervalSinceNow: 0.1))
            #endif
            say("the callback ends")
        }
        post("a")
    }

    /// Posts and exits at once.
    static func postAndExit() {
        post("a")
        exit(0)
    }

    /// Posts at each line of the standard input.
    static func postWhenTold() {
        CFNotificationCenter.onError = { say($0.code?.description ?? "") }
        DispatchQueue.global().async {
            while let name = readLine() {
                post(name)
                say("posted \(name)")
            }
            exit(0)
        }
    }
}
