// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

/// The two ways in which the programs are compiled.
let forms = ["darwin-programs", "darwin-programs-foundation"]

extension PrivateBus {
    /// The environment that makes this bus a program's session bus.
    var environment: [String: String?] {
        ["DBUS_SESSION_BUS_ADDRESS": address, "NOTIFYBUS_ADDRESS": nil, "XDG_RUNTIME_DIR": nil]
    }

    /// Runs a program on this bus until it exits.
    ///
    /// - Returns: its lines of output.
    func lines(
        of form: String,
        _ arguments: String...,
        timeout: Duration = .patience,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> [String] {
        let result = try run(productPath(form), arguments, environment: environment, timeout: timeout)
        #expect(result.status == 0, "\(result.errorOutput)", sourceLocation: sourceLocation)
        #expect(result.errorOutput == "", sourceLocation: sourceLocation)
        return result.lines
    }

    /// Starts a program on this bus.
    func startProgram(_ form: String, _ arguments: String..., input: CommandStream = .null) throws -> RunningCommand {
        try start(productPath(form), arguments, environment: environment, input: input)
    }
}
