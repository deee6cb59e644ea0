// SPDX-License-Identifier: Apache-2.0

// The names are Apple's.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

// What accompanies the Darwin notify center on Apple's systems. The compiler tells users of these what to use instead.

/// The center inside one program.
@available(*, unavailable, message: "Inside a program use Foundation's NotificationCenter.default.")
public func CFNotificationCenterGetLocalCenter() -> CFNotificationCenter! { nil }

/// The center that carries dictionaries between programs.
@available(
    *,
    unavailable,
    message:
        "Linux has no distributed center; CFNotificationCenterGetDarwinNotifyCenter() carries names between programs."
)
public func CFNotificationCenterGetDistributedCenter() -> CFNotificationCenter! { nil }

/// Runs the run loop of the current thread.
@available(*, unavailable, message: "Use dispatchMain(), or RunLoop.main.run() of Foundation.")
public func CFRunLoopRun() {}
