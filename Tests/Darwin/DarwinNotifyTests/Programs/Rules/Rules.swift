// SPDX-License-Identifier: Apache-2.0

// Deliberately written the way people write it.
// swift-format-ignore-file: NeverForceUnwrap

import DarwinNotify
import NotifyCore

/// Programs that each test one rule of the functions.
///
/// Their closures capture variables, which those of real code can't.
@MainActor
enum Rules {
    static let all: [String: @MainActor () -> Void] = [
        "arguments": arguments,
        "nil-observer": nilObserver,
        "nil-name": nilName,
        "removal-by-name": removalByName,
        "removal-of-all-names": removalOfAllNames,
        "removal-of-every": removalOfEvery,
        "removal-of-duplicates": removalOfDuplicates,
        "removed-while-waiting": removedWhileWaiting,
        "changes-inside-callback": changesInsideCallback,
        "removal-elsewhere": removalElsewhere,
        "main-queue": mainQueue,
        "many-duplicates": manyDuplicates,
        "many-observers": manyObservers,
        "many-names": manyNames,
        "churn": churn,
        "endless-observer": endlessObserver,
        "errors": errors,
        "errors-without-handler": errorsWithoutHandler,
        "reach": reach,
        "post-and-exit": postAndExit,
        "post-when-told": postWhenTold,
        "local-arguments": localArguments,
        "local-filters": localFilters,
        "local-removal": localRemoval,
        "local-changes": localChanges,
        "local-thread": localThread,
        "distributed": distributed,
        "run-loop": runLoop,
        "nested-run-loop": nestedRunLoop,
    ]

    static let center = CFNotificationCenterGetDarwinNotifyCenter()

    /// A pointer that is never dereferenced.
    static func observer(_ number: Int) -> UnsafeRawPointer? { UnsafeRawPointer(bitPattern: number) }

    static func observe(_ name: String, by number: Int, _ callback: @escaping @MainActor (String) -> Void) {
        CFNotificationCenterAddObserver(
            center,
            observer(number),
            { _, _, name, _, _ in callback(name!.rawValue as String) },
            name as CFString,
            nil,
            .deliverImmediately
        )
    }

    static func remove(_ number: Int, _ name: String?) {
        CFNotificationCenterRemoveObserver(
            center,
            observer(number),
            name.map { CFNotificationName($0 as CFString) },
            nil
        )
    }

    /// The next post of `end` ends the program, which proves that nothing else came before it.
    static func endWith(_ result: @escaping @MainActor () -> String = { "end" }) {
        observe("end", by: 0) { _ in
            say(result())
            finish()
        }
    }

    /// Waits until every post so far is in the main queue, where this runs.
    static func settle() {
        do throws(NotifyBusError) {
            try DarwinCenter.shared.synchronize(timeout: .seconds(120))
            try DarwinCenter.shared.barrier(timeout: .seconds(120))
        } catch {
            say("\(error)")
        }
    }
}

/// Posts a name, on whatever thread this runs.
func post(_ name: String) {
    CFNotificationCenterPostNotification(
        CFNotificationCenterGetDarwinNotifyCenter(),
        CFNotificationName(name as CFString),
        nil,
        nil,
        true
    )
}
