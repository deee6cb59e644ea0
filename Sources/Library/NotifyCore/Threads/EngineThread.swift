// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import NotifyNames

/// A joinable thread that blocks all signals, so that a program's handlers keep running on its own threads.
package struct EngineThread {
    private let handle: pthread_t

    package init(name: String = "notifybus", _ body: @escaping @Sendable () -> Void) throws(NotifyBusError) {
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
                linux_name_thread(body.name)
                body.run()
                return nil
            },
            box.toOpaque()
        )
        guard status == 0 else {
            box.release()
            throw NotifyBusError(.failed, "Cannot start a thread: \(describe(errno: status)).", errno: status)
        }
        self.handle = handle
    }

    var isCurrent: Bool { pthread_equal(handle, pthread_self()) != 0 }

    /// Lets it exit on its own.
    package func detach() {
        pthread_detach(handle)
    }

    /// Waits for its exit; from the thread itself, lets it exit on its own.
    package func finish() {
        if isCurrent { pthread_detach(handle) } else { pthread_join(handle, nil) }
    }
}
