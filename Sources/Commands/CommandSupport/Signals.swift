// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc

/// The signals that a command's main loop reads from a descriptor, such as those that end it.
///
/// A signal that was ignored before us, as by `nohup` or the `&` of a script, stays ignored.
package struct Signals: Sendable {
    package static let ending = [SIGINT, SIGTERM, SIGHUP, SIGQUIT]

    /// A received signal.
    package struct Arrival {
        package let number: Int32
        /// Whether it came from the kernel, like ^C: then the terminal's whole process group has received it.
        package let isFromKernel: Bool
    }

    /// Readable when a signal has been received.
    package let descriptor: Int32

    /// Blocks the signals in this thread; the library's threads block all signals anyway.
    ///
    /// Create this once the command has started its work: until then a signal ends the process by itself, as is
    /// expected when interrupting an attempt to connect.
    ///
    /// - Parameter others: additional signals to read.
    package init(and others: [Int32] = []) throws(CommandFailure) {
        // If our parent ignored it, children would vanish without leaving a status.
        signal(SIGCHLD, SIG_DFL)
        try self.init(only: (Signals.ending + others).filter { !Signals.isIgnored($0) })
    }

    /// Blocks these signals, and reads nothing but them, even if they are ignored.
    package init(only numbers: [Int32]) throws(CommandFailure) {
        var signals = sigset_t()
        sigemptyset(&signals)
        // The kernel keeps even an ignored signal for us once it is blocked.
        for number in numbers { sigaddset(&signals, number) }
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        descriptor = linux_signalfd(&signals)
        if descriptor < 0 {
            throw CommandFailure(cannotCreate: "a signalfd", errno)
        }
    }

    private static func isIgnored(_ number: Int32) -> Bool {
        var action = sigaction()
        sigaction(number, nil, &action)
        // Swift can't compare function pointers.
        return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
            == unsafeBitCast(SIG_IGN, to: Int.self)
    }

    /// The next received signal, if any.
    package func next() -> Arrival? {
        // A signalfd_siginfo has 128 bytes, and begins with the number of the signal, an error number and a code.
        withUnsafeTemporaryAllocation(byteCount: 128, alignment: 8) { info in
            guard read(descriptor, info.baseAddress, info.count) == info.count else { return nil }
            // SI_KERNEL of <signal.h>.
            let isFromKernel = info.load(fromByteOffset: 8, as: Int32.self) == 0x80
            return Arrival(number: Int32(info.load(as: UInt32.self)), isFromKernel: isFromKernel)
        }
    }

    /// How a command ends: with a status, or by the signal that ended its work; see ``end(by:)``.
    package enum Ending {
        case code(ExitCode)
        case signal(Int32)
    }

    /// Ends the process by a signal that has been read, as the signal would have by default: then a shell ends its
    /// loop, and a service manager knows that the end was requested.
    package static func end(by number: Int32) -> Never {
        signal(number, SIG_DFL)
        var signals = sigset_t()
        sigemptyset(&signals)
        sigaddset(&signals, number)
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
        raise(number)
        // In a container, process 1 does not die from it.
        exit(128 + number)
    }
}
