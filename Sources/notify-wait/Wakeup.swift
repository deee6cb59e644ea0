// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import Synchronization

/// The pipe that the main thread sleeps on, and that callbacks and signals write to.
///
/// A pipe in place of an eventfd and a signalfd: Swift's Glibc module has neither, and a C target for two calls would
/// cost more than the second descriptor.
final class Wakeup: Sendable {
    /// Readable when there is something to look at.
    let descriptor: Int32
    fileprivate let writeEnd: Int32

    init() throws(StartError) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else {
            throw StartError("can't make a pipe: \(Diagnostics.text(of: errno))")
        }
        for end in ends {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
        }
        descriptor = ends[0]
        writeEnd = ends[1]
    }

    /// Makes the descriptor readable. A full pipe is no loss: it is readable already.
    func wake() {
        Wakeup.write(to: writeEnd)
    }

    /// Takes everything out again. Look for the reasons after this, not before.
    func clear() {
        withUnsafeTemporaryAllocation(byteCount: 512, alignment: 1) { buffer in
            while read(descriptor, buffer.baseAddress, buffer.count) == buffer.count {}
        }
    }

    fileprivate static func write(to descriptor: Int32) {
        var byte: UInt8 = 0
        _ = Glibc.write(descriptor, &byte, 1)
    }
}

/// The signals that `notify-wait` handles: those that end it, and the one that a child has ended.
enum Signals {
    static let ending = [SIGINT, SIGTERM, SIGHUP]

    private static let caught = Atomic<UInt64>(0)
    private static let pipe = Atomic<Int32>(-1)

    /// From here on signals are noted and wake the main thread. Before this they end the process at once, which is
    /// what someone wants who interrupts a connection that does not come about.
    ///
    /// No other thread ever runs the handler: those of the library block every signal.
    static func handle(waking wakeup: Wakeup) {
        // Also the first use of both variables, which must not happen in the handler.
        caught.store(0, ordering: .relaxed)
        pipe.store(wakeup.writeEnd, ordering: .relaxed)
        var action = sigaction()
        // Without SA_RESTART, so that a write that the reader lets wait can be interrupted.
        action.__sigaction_handler.sa_handler = { number in
            let code = errno
            _ = Signals.caught.bitwiseOr(1 << UInt64(number), ordering: .relaxed)
            Wakeup.write(to: Signals.pipe.load(ordering: .relaxed))
            errno = code
        }
        var handled = sigset_t()
        sigemptyset(&handled)
        for number in ending + [SIGCHLD] where number == SIGCHLD || !isIgnored(number) {
            sigaction(number, &action, nil)
            sigaddset(&handled, number)
        }
        pthread_sigmask(SIG_UNBLOCK, &handled, nil)
    }

    /// What `nohup` and a shell's `&` have ordered stays in force, here and in children.
    static func isIgnored(_ number: Int32) -> Bool {
        var action = sigaction()
        sigaction(number, nil, &action)
        return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
            == unsafeBitCast(SIG_IGN, to: Int.self)
    }

    /// The signals that have come since the last call, as bits.
    static func take() -> Set {
        Set(bits: caught.exchange(0, ordering: .relaxed))
    }

    struct Set {
        fileprivate let bits: UInt64

        func contains(_ number: Int32) -> Bool {
            bits & (1 << UInt64(number)) != 0
        }
    }
}
