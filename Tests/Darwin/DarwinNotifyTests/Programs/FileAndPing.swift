// SPDX-License-Identifier: Apache-2.0

// Deliberately written the way people write it.
// swift-format-ignore-file: NeverForceUnwrap

import DarwinNotify
import Glibc

#if WITH_FOUNDATION
    import Foundation
#endif

/// A message in a file, and a notification that announces it: how an app and its extension exchange more than a name.
final class Mailbox {
    private let folder: String
    private var listeners: [String: (String) -> Void] = [:]

    init(folder: String) { self.folder = folder }

    deinit { CFNotificationCenterRemoveEveryObserver(CFNotificationCenterGetDarwinNotifyCenter(), context) }

    private var context: UnsafeRawPointer { UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque()) }

    /// Puts the message in place atomically, then pings.
    func pass(_ message: String, identifier: String) {
        guard let file = fopen("\(folder)/\(identifier).new", "w") else { return }
        fputs(message, file)
        fclose(file)
        rename("\(folder)/\(identifier).new", "\(folder)/\(identifier)")
        let name = CFNotificationName(identifier as CFString)
        let nothing: CFDictionary? = nil
        CFNotificationCenterPostNotification(CFNotificationCenterGetDarwinNotifyCenter(), name, nil, nothing, true)
    }

    func message(identifier: String) -> String? {
        guard let file = fopen("\(folder)/\(identifier)", "r") else { return nil }
        defer { fclose(file) }
        var text = [CChar](repeating: 0, count: 256)
        guard fgets(&text, Int32(text.count), file) != nil else { return nil }
        return text.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
    }

    /// One listener per identifier; a new listener replaces the previous one, and must not be called twice.
    func listen(identifier: String, listener: @escaping (String) -> Void) {
        stopListening(identifier: identifier)
        listeners[identifier] = listener
        CFNotificationCenterAddObserver(
            CFNotificationCenterGetDarwinNotifyCenter(),
            context,
            { _, context, name, _, _ in
                let mailbox = Unmanaged<Mailbox>.fromOpaque(context!).takeUnretainedValue()
                mailbox.arrived(name!.rawValue as String)
            },
            identifier as CFString,
            nil,
            .deliverImmediately
        )
    }

    func stopListening(identifier: String) {
        listeners[identifier] = nil
        CFNotificationCenterRemoveObserver(
            CFNotificationCenterGetDarwinNotifyCenter(),
            context,
            CFNotificationName(identifier as CFString),
            nil
        )
    }

    private func arrived(_ identifier: String) {
        guard let listener = listeners[identifier], let message = message(identifier: identifier) else { return }
        listener(message)
    }
}

nonisolated(unsafe) private var mailbox: Mailbox?

func fileAndPing() {
    let box = Mailbox(folder: CommandLine.arguments[2])
    mailbox = box
    box.listen(identifier: "com.example.greeting") { _ in say("replaced, and called") }
    box.listen(identifier: "com.example.greeting") { message in
        say(message)
        box.pass("goodbye", identifier: "com.example.farewell")
    }
    box.listen(identifier: "com.example.farewell") { message in
        say(message)
        finish()
    }
    box.pass("hello", identifier: "com.example.greeting")
}
