// SPDX-License-Identifier: Apache-2.0

public import Glibc

/// Another user's process, whose connection to a bus this test uses.
public final class Stranger: Sendable {
    /// What the process does once it is connected.
    public enum Fate: Sendable {
        /// It exits at once, before the initializer returns.
        case ends
        /// It stays until it is released.
        case stays
        /// It executes a program when it is released.
        case executes(String)
        /// It makes a folder its root directory, and stays until it is released.
        case changesRoot(String)
    }

    /// A user that every Linux machine has, without any rights.
    public static let nobody: UInt32 = 65_534

    /// Nil if a process of another user can be started here, otherwise a sentence that says why not.
    public static var unavailable: String? {
        geteuid() == 0 ? nil : "Only root can connect as another user."
    }

    /// The process that connected.
    public let pid: pid_t
    /// The connection. It outlives the process.
    public let client: RawBusClient

    private let command: RunningCommand

    /// Starts the process, and returns when the bus has admitted it.
    public init(address: String, user: UInt32 = nobody, _ fate: Fate) throws {
        let action =
            switch fate {
            case .ends: ["exit"]
            case .stays: ["stay"]
            case .executes(let program): ["exec", program]
            case .changesRoot(let folder): ["chroot", folder]
            }
        var ends: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
            throw TestSupportError("Cannot make sockets: \(lastError())")
        }
        let handover = UnixStream(descriptor: ends[0])
        defer { close(ends[1]) }
        command = try start(
            productPath("stranger"),
            [BusAddress.path(of: address), String(user)] + action,
            errorOutput: .null,
            descriptors: [3: ends[1]]
        )
        pid = command.pid
        let socket = try handover.receiveDescriptor(deadline: Deadline(after: .patience))
        if case .ends = fate { _ = try command.wait(timeout: .patience) }
        client = try RawBusClient(UnixStream(descriptor: socket), user: user, passesDescriptors: true)
    }

    /// Releases the process to do its action.
    public func letGo() throws {
        try command.writeInput("\n")
    }

    /// Lets the process exit, and returns when it has.
    public func end() throws {
        command.closeInput()
        _ = try command.wait(timeout: .patience)
    }
}

/// Runs a command in a process with a chosen id.
///
/// - Returns: nil if the kernel does not assign that id.
public func start(as pid: pid_t, _ command: String...) throws -> RunningCommand? {
    let running = try start(productPath("stranger"), ["--as", String(pid)] + command)
    let hasDecided = waitUntil { processState(pid) != nil || processState(running.pid).map { $0 == "Z" } ?? true }
    return hasDecided && processState(pid) != nil ? running : nil
}
