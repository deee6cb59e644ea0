// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Runs a body on a detached thread.
public func startThread(_ body: @escaping @Sendable () -> Void) {
    final class Box: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
    var thread = pthread_t()
    let argument = Unmanaged.passRetained(Box(body)).toOpaque()
    let error = pthread_create(
        &thread,
        &attributes,
        { argument in
            if let argument { Unmanaged<Box>.fromOpaque(argument).takeRetainedValue().body() }
            return nil
        },
        argument
    )
    precondition(error == 0, "Cannot start a thread: \(String(cString: strerror(error)))")
    pthread_attr_destroy(&attributes)
}

/// Writes with SIGPIPE blocked on this thread, and consumes the signal that the write caused.
///
/// Ignoring the signal in the whole process would hide it from tests of code that must not cause it.
func withoutBrokenPipeSignal(_ write: () -> Int) -> Int {
    var pipe = sigset_t()
    var before = sigset_t()
    sigemptyset(&pipe)
    sigaddset(&pipe, SIGPIPE)
    pthread_sigmask(SIG_BLOCK, &pipe, &before)
    let result = write()
    let error = errno
    if result < 0 && error == EPIPE {
        var now = timespec()
        sigtimedwait(&pipe, nil, &now)
    }
    pthread_sigmask(SIG_SETMASK, &before, nil)
    errno = error
    return result
}
