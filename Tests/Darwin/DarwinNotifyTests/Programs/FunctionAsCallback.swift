// SPDX-License-Identifier: Apache-2.0

import DarwinNotify

#if WITH_FOUNDATION
    import Foundation
#endif

/// A function as the callback, as in code converted from C; names in an enumeration.
private enum Event: String, CaseIterable {
    case began = "com.example.recording.began"
    case ended = "com.example.recording.ended"

    var name: CFNotificationName { CFNotificationName(rawValue as CFString) }
}

private func recordingChanged(
    center: CFNotificationCenter?,
    observer: UnsafeMutableRawPointer?,
    name: CFNotificationName?,
    object: UnsafeRawPointer?,
    userInfo: CFDictionary?
) {
    guard let name = name, let event = Event(rawValue: name.rawValue as String) else { return }
    switch event {
    case .began: say("began")
    case .ended:
        say("ended")
        finish()
    }
}

func functionAsCallback() {
    guard let center = CFNotificationCenterGetDarwinNotifyCenter() else { return }
    for event in Event.allCases {
        CFNotificationCenterAddObserver(center, nil, recordingChanged, event.name.rawValue, nil, .deliverImmediately)
    }
    Event.allCases.forEach { CFNotificationCenterPostNotification(center, $0.name, nil, nil, true) }
}
