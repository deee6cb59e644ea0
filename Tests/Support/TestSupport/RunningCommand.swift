// SPDX-License-Identifier: Apache-2.0

public import Glibc

/// A running command. It is killed, with everything it started, when the last reference to this is released.
public final class RunningCommand: Sendable {
    /// Its process id, which is also its process group.
    public let pid: pid_t

    private let path: String
    private let transcript: CommandTranscript
    private let input: Monitor<Int32?>

    init(
        _ path: String,
        _ arguments: [String],
        environment: [String: String?],
        streams: [CommandStream],
        descriptors: [Int32: Int32]
    ) throws {
        var theirs = descriptors
        var ours: [Int32: Int32] = [:]
        var toClose: [Int32] = []
        defer { for descriptor in toClose { close(descriptor) } }
        for (number, stream) in zip(Int32(0)..., streams) {
            switch stream {
            case .null: break
            case .descriptor(let descriptor): theirs[number] = descriptor
            case .pipe:
                let pipe = try makePipe()
                theirs[number] = number == 0 ? pipe.readEnd : pipe.writeEnd
                ours[number] = number == 0 ? pipe.writeEnd : pipe.readEnd
                toClose.append(number == 0 ? pipe.readEnd : pipe.writeEnd)
            }
        }
        do {
            pid = try spawn(path, arguments, environment: environment, descriptors: theirs)
        } catch {
            toClose += ours.values
            throw error
        }
        self.path = path
        if let descriptor = ours[0] { _ = fcntl(descriptor, F_SETFL, O_NONBLOCK) }
        input = Monitor(ours[0])
        transcript = CommandTranscript(of: pid, output: ours[1], errorOutput: ours[2])
    }

    deinit {
        closeInput()
        transcript.ifRunning { kill(-pid, SIGKILL) }
    }

    /// Sends a signal to the command, unless it has exited.
    public func send(signal: Int32) {
        transcript.ifRunning { kill(pid, signal) }
    }

    /// Writes to the command's standard input.
    ///
    /// - Throws: ``TestSupportError`` if the command does not read it within `timeout`, or has closed it.
    public func writeInput(_ text: String, timeout: Duration = .patience) throws {
        let deadline = Deadline(after: timeout)
        var rest = Array(text.utf8)[...]
        try input.read { descriptor in
            guard let descriptor else { throw TestSupportError("The input of \(path) is closed.") }
            while !rest.isEmpty {
                let count = withoutBrokenPipeSignal {
                    rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
                }
                if count > 0 {
                    rest = rest.dropFirst(count)
                } else if errno == EAGAIN, !deadline.hasPassed {
                    var source = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    poll(&source, 1, deadline.remainingMilliseconds)
                } else if errno != EINTR {
                    throw TestSupportError("Cannot write to \(path): \(lastError())")
                }
            }
        }
    }

    /// Closes the command's standard input.
    public func closeInput() {
        input.change { descriptor in
            if let descriptor { close(descriptor) }
            descriptor = nil
        }
    }

    /// Blocks until the standard output contains a text; returns all output so far.
    ///
    /// - Throws: ``TestSupportError`` if it does not within `timeout`, or exits first.
    @discardableResult
    public func waitForOutput(containing text: String, timeout: Duration = .patience) throws -> String {
        try transcript.wait(
            for: .output,
            timeout,
            { CommandTranscript.contains($0, text) },
            else: "print “\(text)”",
            path
        )
    }

    /// Blocks until the standard error contains a text; returns all of it so far.
    ///
    /// - Throws: ``TestSupportError`` if it does not within `timeout`, or exits first.
    @discardableResult
    public func waitForErrorOutput(containing text: String, timeout: Duration = .patience) throws -> String {
        try transcript.wait(
            for: .errorOutput,
            timeout,
            { CommandTranscript.contains($0, text) },
            else: "say “\(text)”",
            path
        )
    }

    /// Blocks until the standard output has `count` whole lines; returns all of its lines.
    ///
    /// - Throws: ``TestSupportError`` if it does not within `timeout`, or exits first.
    @discardableResult
    public func waitForOutputLines(_ count: Int, timeout: Duration = .patience) throws -> [String] {
        let enough: ([UInt8]) -> Bool = { CommandTranscript.lineCount($0) >= count }
        return try transcript.wait(for: .output, timeout, enough, else: "print \(count) lines", path)
            .split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
    }

    /// Blocks until the command has exited and its output is read.
    ///
    /// - Throws: ``TestSupportError`` after `timeout`, when the command has been killed; and if it is a script in which bash
    ///   missed a command, since what such a script shows depends on the machine.
    public func wait(timeout: Duration = .patience) throws -> CommandResult {
        if let result = transcript.result(within: timeout) {
            if CommandTranscript.contains(Array(result.errorOutput.utf8), ": command not found\n") {
                throw TestSupportError("\(path) needs a command that is not installed:\n\(result.errorOutput)")
            }
            return result
        }
        let threads = transcript.waitingThreads()
        transcript.ifRunning { kill(-pid, SIGKILL) }
        let result = transcript.result(within: .patience)
        throw TestSupportError(
            """
            \(path) did not end within \(timeout). Its output:
            \(result?.output ?? "")
            Its errors:
            \(result?.errorOutput ?? "")
            What its threads wait for:
            \(threads)
            """
        )
    }
}
