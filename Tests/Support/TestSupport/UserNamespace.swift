// SPDX-License-Identifier: Apache-2.0

import Glibc

/// How a program gets into a user namespace, as in a container without root. See user_namespaces(7).
public enum UserNamespace: String, CaseIterable, Codable, Sendable, CustomStringConvertible {
    /// The user has another number there than outside.
    case renumbers
    /// The user is root there.
    case mapsRoot

    /// Why it can't be made here; nil if it can.
    public static let obstacle: String? = {
        guard isInstalled("unshare") else { return "unshare is not installed" }
        do {
            for namespace in allCases {
                let result = try run("unshare", Array(namespace.command.dropFirst()) + ["true"])
                if result.status != 0 { return "User namespaces can't be made here: \(result.errorOutput)" }
            }
            return nil
        } catch {
            return "User namespaces can't be made here: \(error)"
        }
    }()

    /// What comes before a program and its arguments.
    public var command: [String] {
        switch self {
        case .renumbers: ["unshare", "-U", "--map-user=\(geteuid() == 1_000 ? 1_001 : 1_000)", "--"]
        case .mapsRoot: ["unshare", "-Ur", "--"]
        }
    }

    /// The options of unshare(1).
    public var description: String { command[1..<(command.count - 1)].joined(separator: " ") }

    /// The same as another user, which takes root.
    ///
    /// - Parameter user: a user without any rights.
    public func command(as user: UInt32) -> [String] {
        ["setpriv", "--reuid=\(user)", "--regid=\(user)", "--clear-groups", "--"] + command
    }
}

/// Starts a program of this package in the way that other commands do, such as in a user namespace.
public func start(
    product: String,
    _ arguments: [String] = [],
    by command: [String],
    environment: [String: String?] = [:],
    input: CommandStream = .pipe,
    descriptors: [Int32: Int32] = [:]
) throws -> RunningCommand {
    let all = try command + [productPath(product)] + arguments
    return try start(
        all[0],
        Array(all.dropFirst()),
        environment: environment,
        input: input,
        descriptors: descriptors
    )
}
