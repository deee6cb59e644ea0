// SPDX-License-Identifier: Apache-2.0

public import Glibc
import Synchronization

/// A private message bus for one test, in a folder of its own.
///
/// It ends with the last reference to it, and with this process, however that ends. Its calls block, and can be made
/// from any thread.
public final class PrivateBus: Sendable {
    /// Which daemon it is.
    public let kind: BusKind
    /// Its address, as in `DBUS_SESSION_BUS_ADDRESS`; the same after ``restart()``.
    public let address: String

    /// Where its socket is. An agent for which this is `XDG_RUNTIME_DIR` notes there what it stops, out of the way of those of
    /// other tests.
    public let folder: String
    private let process: Mutex<BusProcess?>

    /// The default policy of a bus.
    public static let openPolicy = BusOptions.openPolicy

    /// Starts a bus and returns when it answers.
    ///
    /// - Throws: ``TestSupportError`` with the daemon's output, if it does not answer in time.
    public convenience init(
        _ kind: BusKind,
        limits: [String: Int] = [:],
        policy: String = PrivateBus.openPolicy
    ) throws {
        try self.init(kind, options: BusOptions(limits: limits, policy: policy))
    }

    /// Starts a bus that allows so many match rules, a multiple of 16: dbus-daemon each connection, dbus-broker each user.
    ///
    /// - Throws: ``TestSupportError`` with the daemon's output, if it does not answer in time.
    public convenience init(_ kind: BusKind, rules: Int) throws {
        switch kind {
        case .daemon: try self.init(kind, limits: ["max_match_rules_per_connection": rules])
        case .broker:
            try self.init(
                kind,
                limits: ["max_match_rules_per_connection": rules / 16, "max_connections_per_user": 16]
            )
        }
    }

    /// Starts a bus and returns when it answers.
    ///
    /// - Throws: ``TestSupportError`` with the daemon's output, if it does not answer in time.
    public init(_ kind: BusKind, options: BusOptions) throws {
        self.kind = kind
        folder = try makeFolder()
        address = BusAddress.unix(path: "\(folder)/bus")
        do {
            try save(options.configuration(listeningAt: address), toFile: "\(folder)/bus.conf")
            process = Mutex(try BusProcess(kind, in: folder))
        } catch {
            removeFolder(folder)
            throw error
        }
    }

    deinit {
        kill()
        removeFolder(folder)
    }

    /// The path of its socket, which its address spells in its own way if it contains a space, for example.
    public var socketPath: String { "\(folder)/bus" }

    /// The process that routes: dbus-daemon, or dbus-broker, not its launcher.
    ///
    /// Using it after ``kill()`` is a programming error, because any number could be mistaken for a process.
    public var processID: pid_t {
        process.withLock { process in
            guard let process else { preconditionFailure("The bus was killed") }
            return process.router
        }
    }

    /// The resident memory of the process that routes; 0 after ``kill()``.
    public var residentBytes: Int {
        process.withLock { $0.map { memory(of: $0.router) } } ?? 0
    }

    /// What the daemon wrote to its standard output and error.
    public var log: String { (try? readFile("\(folder)/log")) ?? "" }

    /// Stops the process that routes, and returns when it is stopped. Clients can still connect and write.
    public func stop() {
        let router = processID
        Glibc.kill(router, SIGSTOP)
        precondition(waitUntil { processState(router) == "T" }, "\(kind) (process \(router)) does not stop")
    }

    /// Continues the process that routes.
    public func resume() {
        Glibc.kill(processID, SIGCONT)
    }

    /// Kills the bus, stopped or not, and returns when all its processes are gone.
    public func kill() {
        process.withLock { process in
            process?.kill()
            process = nil
        }
    }

    /// Restarts the bus at the same address; kills it first if necessary.
    ///
    /// - Throws: ``TestSupportError`` with the daemon's output, if it does not answer in time.
    public func restart() throws {
        try process.withLock { process in
            process?.kill()
            process = nil
            process = try BusProcess(kind, in: folder)
        }
    }
}

func makeFolder() throws -> String {
    let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    var template = Array("\(parent)/notifybus-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else {
        throw TestSupportError("Cannot make a folder in \(parent): \(lastError())")
    }
    let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    // Tests of what other users may do connect as other users.
    chmod(folder, 0o755)
    return folder
}

func removeFolder(_ folder: String) {
    for name in entries(ofFolder: folder) where unlink("\(folder)/\(name)") != 0 { removeFolder("\(folder)/\(name)") }
    rmdir(folder)
}

/// In the class above, its own property hides the function of that name.
private func memory(of process: pid_t) -> Int { residentBytes(of: process) }
