// SPDX-License-Identifier: Apache-2.0

import CBridgeLinux
import Glibc

/// A descriptor that other threads make readable.
final class WakeUp: Sendable {
    let descriptor: Int32

    init() throws(ConfigurationError) {
        descriptor = bridge_eventfd()
        guard descriptor >= 0 else {
            throw ConfigurationError("Cannot create an eventfd: \(String(cString: strerror(errno))).")
        }
    }

    deinit { close(descriptor) }

    func signal() {
        var one: UInt64 = 1
        _ = write(descriptor, &one, 8)
    }

    func clear() {
        var count: UInt64 = 0
        _ = read(descriptor, &count, 8)
    }
}

/// Runs a closure on its own thread, which takes no signals.
func startThread(_ name: String, _ body: @escaping @Sendable () -> Void) throws(ConfigurationError) {
    final class Body: Sendable {
        let name: String
        let run: @Sendable () -> Void
        init(_ name: String, _ run: @escaping @Sendable () -> Void) { (self.name, self.run) = (name, run) }
    }
    var everything = sigset_t()
    var previous = sigset_t()
    sigfillset(&everything)
    pthread_sigmask(SIG_SETMASK, &everything, &previous)
    defer { pthread_sigmask(SIG_SETMASK, &previous, nil) }
    let box = Unmanaged.passRetained(Body(name, body))
    var handle = pthread_t()
    let status = pthread_create(
        &handle,
        nil,
        { context in
            guard let context else { return nil }
            let body = Unmanaged<Body>.fromOpaque(context).takeRetainedValue()
            bridge_name_thread(body.name)
            body.run()
            return nil
        },
        box.toOpaque()
    )
    guard status == 0 else {
        box.release()
        throw ConfigurationError("Cannot start a thread: \(String(cString: strerror(status))).")
    }
    pthread_detach(handle)
}

/// Clocks, in nanoseconds.
enum Clock {
    /// Monotonic.
    static var now: Int64 { read(CLOCK_MONOTONIC) }
    /// Since 1970.
    static var wall: Int64 { read(CLOCK_REALTIME) }

    private static func read(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}

/// Waits until a descriptor is ready for one of its events, or until a time.
///
/// - Parameter until: on the monotonic clock; nil for no limit.
func waitForEvents(_ sources: inout [pollfd], until time: Int64?) {
    // Rounded up: a wait that ends just before its time would spin.
    let milliseconds = time.map { Int32(clamping: max(0, ($0 - Clock.now + 999_999) / 1_000_000)) } ?? -1
    if poll(&sources, nfds_t(sources.count), milliseconds) < 0 {
        for index in sources.indices { sources[index].revents = 0 }
    }
}
