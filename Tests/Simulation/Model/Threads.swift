// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Threads that end when their work is done.
package enum Threads {
    private final class Body: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// Runs the same function on several threads, and waits for all of them.
    package static func run(_ count: Int, _ body: @escaping @Sendable () -> Void) {
        var threads: [pthread_t] = []
        for _ in 1..<max(2, count) where count > 1 {
            var thread = pthread_t()
            let argument = Unmanaged.passRetained(Body(body)).toOpaque()
            let status = pthread_create(
                &thread,
                nil,
                { argument in
                    if let argument { Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run() }
                    return nil
                },
                argument
            )
            if status == 0 { threads.append(thread) }
        }
        body()
        for thread in threads { pthread_join(thread, nil) }
    }
}
