// SPDX-License-Identifier: Apache-2.0

// A program for Darwin that asks which C library there is, and finds Darwin: the package compiles it with
// '-module-alias Darwin=notify'.
#if canImport(Darwin)
    import Darwin
#else
    #error("Without the flag there is no Darwin.")
#endif

var token: Int32 = NOTIFY_TOKEN_INVALID
guard notify_register_check("com.example.as-darwin", &token) == NOTIFY_STATUS_OK else { exit(1) }
var changed: Int32 = 0
notify_check(token, &changed)
notify_post("com.example.as-darwin")
notify_check(token, &changed)
puts("changed \(changed), \(kNotifyTimeZoneChange)")

// Its own queues, as Darwin's notify module brings them.
notify_register_dispatch("com.example.as-darwin", &token, DispatchQueue.main) { token in
    puts("heard on the main queue")
    notify_cancel(token)
    exit(0)
}
notify_post("com.example.as-darwin")
dispatchMain()
