// SPDX-License-Identifier: Apache-2.0

import CommandSupport
// `environ` is a global variable of C; nothing here changes it.
@preconcurrency import Glibc

/// A process that was started here and has not been reaped yet.
struct Child {
    /// How a process has ended.
    enum End: Equatable {
        case exited(Int32)
        case killed(Int32)

        /// - Parameter status: as by waitpid(2); the macros of <sys/wait.h> are not imported.
        init(_ status: Int32) {
            // The low seven bits are the signal, the next byte the status.
            self = status & 0x7f == 0 ? .exited((status >> 8) & 0xff) : .killed(status & 0x7f)
        }

        /// How a shell reports it.
        var status: ExitCode {
            switch self {
            case .exited(let status): ExitCode(rawValue: status)
            case .killed(let number): ExitCode(rawValue: 128 + number)
            }
        }

        /// For the end of a sentence.
        var text: String {
            switch self {
            case .exited(let status): "exited with status \(status)"
            case .killed(let number):
                "was killed by signal \(number)" + (strsignal(number).map { " (\(String(cString: $0)))" } ?? "")
            }
        }
    }

    let pid: pid_t

    /// Starts a program in our process group, with our standard input, so that it may interact with the user. No signal is
    /// blocked, and none ignored except those that were ignored before us.
    ///
    /// - Returns: an error number if it can't be started.
    static func start(_ command: [Argument]) -> Result<Child, Errno> {
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        // The only signal that we ignore ourselves.
        var defaults = sigset_t()
        sigemptyset(&defaults)
        sigaddset(&defaults, SIGPIPE)
        posix_spawnattr_setsigdefault(&attributes, &defaults)

        var pid: pid_t = 0
        let status = withExecution(of: command, []) { arguments, environment in
            posix_spawnp(&pid, command[0].start, nil, &attributes, arguments, environment)
        }
        return status == 0 ? .success(Child(pid: pid)) : .failure(Errno(number: status))
    }

    /// Calls `body` with the arguments and the environment of a program.
    ///
    /// - Parameter variables: `NAME=value` each, in addition to our environment.
    static func withExecution(
        of arguments: [Argument],
        _ variables: [String],
        _ body: (
            UnsafePointer<UnsafeMutablePointer<CChar>?>, UnsafePointer<UnsafeMutablePointer<CChar>?>
        ) -> Int32
    ) -> Int32 {
        var argumentPointers = arguments.map { UnsafeMutablePointer<CChar>?(UnsafeMutablePointer(mutating: $0.start)) }
        argumentPointers.append(nil)
        let own = variables.map { strdup($0) }
        defer { own.forEach { free($0) } }
        var environment = inheritedEnvironment(replacing: own) + own
        environment.append(nil)
        return body(argumentPointers, environment)
    }

    /// Our environment without the variables that `own` replaces, without the names from another `notify-wait` that has
    /// run us, and without the socket for reporting readiness: only this process should report it, and a `notify-wait`
    /// inside the child would do so too early.
    private static func inheritedEnvironment(
        replacing own: [UnsafeMutablePointer<CChar>?]
    ) -> [UnsafeMutablePointer<CChar>?] {
        var result: [UnsafeMutablePointer<CChar>?] = []
        var next = environ
        while let entry = next.pointee {
            let isOfOther = strncmp(entry, "NOTIFY_SOCKET=", 14) == 0 || strncmp(entry, "NOTIFY_NAMES=", 13) == 0
            if !isOfOther, !own.contains(where: { hasSameName($0, entry) }) {
                result.append(entry)
            }
            next += 1
        }
        return result
    }

    /// Whether two entries of an environment are of the same variable.
    private static func hasSameName(_ a: UnsafeMutablePointer<CChar>?, _ b: UnsafeMutablePointer<CChar>) -> Bool {
        guard let a, let equals = strchr(a, Int32(UInt8(ascii: "="))) else { return false }
        return strncmp(a, b, a.distance(to: equals) + 1) == 0
    }

    /// How it has ended; nil while it runs.
    func reap() -> End? {
        var status: Int32 = 0
        var result: pid_t
        repeat {
            result = waitpid(pid, &status, WNOHANG)
        } while result < 0 && errno == EINTR
        return result == pid ? End(status) : nil
    }
}

/// An error number.
struct Errno: Error {
    let number: Int32
}
