// SPDX-License-Identifier: Apache-2.0

/// A command's exit status and output.
public struct CommandResult: Sendable {
    /// The exit code, or 128 + n if signal n killed the command.
    public let status: Int32
    /// Whether the command exited, rather than being killed by a signal.
    public let exitedNormally: Bool
    /// Its standard output; invalid UTF-8 is repaired.
    public let output: String
    /// Its standard error.
    public let errorOutput: String
    /// Its peak resident memory in bytes, as reported by wait4(2).
    ///
    /// Linux also counts the process before exec, a copy of this one. The number is therefore never below this
    /// process's own; for an exact number use ``peakResidentBytes(of:)`` while it runs.
    public let peakResidentBytes: Int

    /// The whole lines of the standard output.
    public var lines: [String] { wholeLines(of: output) }
}

/// Where one of a command's standard streams goes.
public enum CommandStream: Sendable {
    /// A pipe that ``RunningCommand`` reads or writes.
    case pipe
    /// `/dev/null`.
    case null
    /// A descriptor of this process, which remains open here.
    case descriptor(Int32)
}

/// Runs a command until it exits.
///
/// - Parameters:
///   - path: The program, looked up in `PATH` if there is no slash in it.
///   - arguments: Its arguments, without the name.
///   - environment: What differs from this process's environment; nil removes a variable.
///   - input: Its standard input, nil for `/dev/null`.
///   - timeout: After this the command is killed.
/// - Throws: ``TestSupportError`` if the program can't be started, or does not exit in time.
@discardableResult
public func run(
    _ path: String,
    _ arguments: [String] = [],
    environment: [String: String?] = [:],
    input: String? = nil,
    timeout: Duration = .patience
) throws -> CommandResult {
    let command = try start(path, arguments, environment: environment, input: input == nil ? .null : .pipe)
    if let input {
        // A command may exit without reading all of it; the result shows what it made of that.
        try? command.writeInput(input, timeout: timeout)
        command.closeInput()
    }
    return try command.wait(timeout: timeout)
}

/// Starts a command and returns while it is running.
///
/// - Parameters:
///   - path: The program, looked up in `PATH` if there is no slash in it.
///   - arguments: Its arguments, without the name.
///   - environment: What differs from this process's environment; nil removes a variable.
///   - input: Its standard input.
///   - output: Its standard output.
///   - errorOutput: Its standard error.
///   - descriptors: Further descriptors to inherit: the child's number, below 64, and the descriptor here.
/// - Throws: ``TestSupportError`` if the program can't be started.
public func start(
    _ path: String,
    _ arguments: [String] = [],
    environment: [String: String?] = [:],
    input: CommandStream = .pipe,
    output: CommandStream = .pipe,
    errorOutput: CommandStream = .pipe,
    descriptors: [Int32: Int32] = [:]
) throws -> RunningCommand {
    try RunningCommand(
        path,
        arguments,
        environment: environment,
        streams: [input, output, errorOutput],
        descriptors: descriptors
    )
}

/// A text as one shell word, whatever it contains.
public func shellWord(_ text: String) -> String {
    "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
}

/// A text as one word of the line Exec of a service file, whatever it contains: a bus daemon undoes backslashes, and then splits
/// the line as a shell does.
public func serviceWord(_ text: String) -> String {
    shellWord(text).split(separator: "\\", omittingEmptySubsequences: false).joined(separator: "\\\\")
}
