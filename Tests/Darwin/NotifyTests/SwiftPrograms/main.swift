// SPDX-License-Identifier: Apache-2.0

// Programs as people write them for Darwin, with the one import that they use there. Each is a function; the first
// argument selects one. They are compiled twice, in Swift 6 without Foundation, and in Swift 5 with it.
import notify

#if WITH_FOUNDATION
    import Foundation
#endif

var token: Int32 = 0
var count = 0

switch CommandLine.arguments.dropFirst().first {
case "dispatch":
    // Top-level code, with the main queue and a variable that the closure changes.
    let status = notify_register_dispatch("com.example.dispatch", &token, DispatchQueue.main) { token in
        count += 1
        say("heard \(count)")
        if count == 3 {
            notify_cancel(token)
            exit(notify_is_valid_token(token) ? 1 : 0)
        }
    }
    guard status == NOTIFY_STATUS_OK else { exit(1) }
    say("ready")
    dispatchMain()

case "check":
    guard notify_register_check("com.example.check", &token) == UInt32(NOTIFY_STATUS_OK) else { exit(1) }
    while readLine() != nil {
        var check: Int32 = 0
        guard notify_check(token, &check) == NOTIFY_STATUS_OK else { exit(1) }
        say(check != 0 ? "changed" : "unchanged")
    }

case "descriptor":
    var fd: Int32 = -1
    var other: Int32 = 0
    notify_register_file_descriptor("com.example.one", &fd, 0, &token)
    notify_register_file_descriptor("com.example.two", &fd, NOTIFY_REUSE, &other)
    let source = DispatchSource.makeReadSource(fileDescriptor: fd, queue: .main)
    source.setEventHandler {
        var number: Int32 = 0
        guard read(fd, &number, 4) == 4 else { return }
        say(Int32(bigEndian: number) == token ? "one" : "two")
    }
    source.resume()
    say("ready")
    dispatchMain()

case "stream":
    await printStream()

case "observer":
    runObserver()

case "state":
    let names = ["com.example.state"]
    for name in names {
        var state: UInt64 = 0
        switch notify_register_check(name, &token) {
        case UInt32(NOTIFY_STATUS_OK): break
        default: exit(1)
        }
        say(notify_set_state(token, 42) == NOTIFY_STATUS_SERVER_NOT_FOUND ? "no agent" : "set")
        notify_get_state(token, &state)
        say(state)
    }

case "keys":
    say(kNotifyTimeZoneChange)
    guard notify_register_check(kNotifyClockSet, &token) == NOTIFY_STATUS_OK else { exit(1) }
    notify_cancel(token)

case "unmanaged":
    observeWithUnmanagedSelf()
    dispatchMain()

case "publisher":
    printThreeFromPublisher()

case "end-notify":
    for number in 0..<1_000 { notify_post("com.example.end.\(number)") }

case "end-center":
    try postByCenter()

case "end-core-foundation":
    let center = CFNotificationCenterGetDarwinNotifyCenter()
    for number in 0..<1_000 {
        let name = CFNotificationName("com.example.end.\(number)" as CFString)
        CFNotificationCenterPostNotification(center, name, nil, nil, true)
    }

default:
    exit(64)
}
