// SPDX-License-Identifier: Apache-2.0

extension PrivateBus {
    /// Starts `notify-wait` on this bus and returns once it says that it is ready: its observer is live.
    public func startWaiting(
        _ arguments: [String],
        environment: [String: String?] = [:],
        input: CommandStream = .null,
        output: CommandStream = .pipe
    ) throws -> RunningCommand {
        let ready = try Pipe()
        let command = try start(
            productPath("notify-wait"),
            ["--address", address, "--ready-fd", "3"] + arguments,
            environment: environment,
            input: input,
            output: output,
            descriptors: [3: ready.writeEnd]
        )
        ready.closeWriteEnd()
        guard try ready.read() == "\n" else {
            throw TestSupportError("notify-wait did not come to wait, but said: \(try command.wait().errorOutput)")
        }
        return command
    }
}
