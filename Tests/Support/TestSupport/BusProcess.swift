// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The processes of a running bus.
struct BusProcess: Sendable {
    /// The process that routes.
    let router: pid_t
    /// Its parent or grandparent, which ends together with its descendants when `lifeline` is closed.
    private let launcher: pid_t
    /// The only writable end of the launcher's standard input. The kernel closes it, however this process dies.
    private let lifeline: Int32

    /// Starts a bus with the configuration in a folder, and returns when it answers and its own clients are there.
    init(_ kind: BusKind, in folder: String) throws {
        let path = "\(folder)/bus"
        let arguments =
            switch kind {
            case .daemon:
                ["--exec", kind.rawValue, "--config-file=\(folder)/bus.conf", "--nofork", "--nopidfile", "--nosyslog"]
            case .broker: [path, "\(folder)/bus.conf"]
            }
        let log = open("\(folder)/log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644)
        guard log >= 0 else { throw TestSupportError("Cannot write \(folder)/log: \(lastError())") }
        defer { close(log) }
        let (readEnd, writeEnd) = try makePipe()
        defer { close(readEnd) }
        let launcher: pid_t
        do {
            let program = try productPath("bus-launcher")
            launcher = try spawn(program, arguments, descriptors: [0: readEnd, 1: log, 2: log])
        } catch {
            close(writeEnd)
            throw error
        }

        var router: pid_t?
        var looker: RawBusClient?
        var ended = false
        let timeout = Duration.patience
        let isUp = waitUntil(timeout: timeout) {
            ended = waitpid(launcher, nil, WNOHANG) == launcher
            guard !ended, looker != nil || BusProcess.answers(at: path) else { return ended }
            router = router ?? BusProcess.router(of: kind, below: launcher)
            guard router != nil else { return false }
            guard kind == .broker else { return true }
            looker = looker ?? (try? RawBusClient(address: BusAddress.unix(path: path)))
            return looker.map(BusProcess.isNotAlone) ?? true
        }
        guard isUp, !ended, let router else {
            close(writeEnd)
            if !ended { reap(launcher) }
            let failure = ended ? "ended" : "did not answer within \(timeout)"
            throw TestSupportError("\(kind) \(failure) and said:\n\((try? readFile("\(folder)/log")) ?? "")")
        }
        (self.router, self.launcher, lifeline) = (router, launcher, writeEnd)
    }

    /// Kills everything; returns when the last process is gone and reaped.
    func kill() {
        Glibc.kill(router, SIGKILL)
        close(lifeline)
        reap(launcher)
    }

    private static func router(of kind: BusKind, below launcher: pid_t) -> pid_t? {
        switch kind {
        case .daemon: children(of: launcher, named: kind.rawValue).first
        // The kernel keeps 15 bytes of a program's name.
        case .broker:
            children(of: launcher, named: "dbus-broker-lau").lazy
                .compactMap { children(of: $0, named: kind.rawValue).first }.first
        }
    }

    /// Whether the bus replies to the first line of the handshake. An accepted connection is not enough: the broker's
    /// socket listens before there is a broker.
    private static func answers(at path: String) -> Bool {
        let deadline = Deadline(after: .seconds(5))
        guard let stream = try? UnixStream(path: path) else { return false }
        let greeting = "\0AUTH EXTERNAL \(hexadecimal(String(geteuid()).utf8))\r\n"
        guard (try? stream.send(Array(greeting.utf8), deadline: deadline)) != nil else { return false }
        return (try? stream.receive(deadline: deadline))?.isEmpty == false
    }

    /// Whether there is another client: dbus-broker's launcher is one, but comes a little later, when a test may already
    /// look who else has come.
    private static func isNotAlone(_ client: RawBusClient) -> Bool {
        guard let names = try? client.uniqueNames() else { return true }
        return names.count > 1
    }
}

private func reap(_ pid: pid_t) {
    while waitpid(pid, nil, 0) < 0 && errno == EINTR {}
}
