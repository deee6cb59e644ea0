// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A command's output and exit status, collected by two threads, so that the command never blocks on a full pipe,
/// whatever the test does.
final class CommandTranscript: Sendable {
    enum Stream: Int { case output, errorOutput }

    private struct State {
        var text: [[UInt8]] = [[], []]
        /// The read ends of the pipes; -1 once the other end is closed.
        var descriptors: [Int32]
        var ending: (status: Int32, peakResidentBytes: Int)?
    }

    private let pid: pid_t
    private let state: Monitor<State>

    init(of pid: pid_t, output: Int32?, errorOutput: Int32?) {
        self.pid = pid
        let state = Monitor(State(descriptors: [output ?? -1, errorOutput ?? -1]))
        self.state = state
        startThread { CommandTranscript.read(into: state) }
        startThread { CommandTranscript.awaitEnding(of: pid, in: state) }
    }

    /// Runs a closure while the process id is guaranteed to be valid.
    func ifRunning(_ body: () -> Void) {
        state.read { state in
            if state.ending == nil { body() }
        }
    }

    /// The result, or nil if the command has not exited by then.
    func result(within timeout: Duration) -> CommandResult? {
        guard state.wait(until: Deadline(after: timeout), { $0.ending != nil }) else { return nil }
        // All of the command's output is in the pipes. A program that it left behind may keep them open and write more,
        // and gets a moment for that; whatever is in them by then is read, however long that takes.
        _ = state.wait(until: Deadline(after: .seconds(1))) { $0.descriptors.allSatisfy { $0 < 0 } }
        _ = state.wait(until: Deadline(after: .patience)) { $0.descriptors.allSatisfy(isDrained) }
        return state.read { state in
            state.ending.map { ending in
                let signal = ending.status & 0x7f
                return CommandResult(
                    status: signal == 0 ? ending.status >> 8 & 0xff : 128 + signal,
                    exitedNormally: signal == 0,
                    output: String(decoding: state.text[0], as: UTF8.self),
                    errorOutput: String(decoding: state.text[1], as: UTF8.self),
                    peakResidentBytes: ending.peakResidentBytes
                )
            }
        }
    }

    /// Waits until a stream meets a condition and returns it, or throws an error that says what was missing.
    func wait(
        for stream: Stream,
        _ timeout: Duration,
        _ condition: ([UInt8]) -> Bool,
        else failure: @autoclosure () -> String,
        _ path: String
    ) throws -> String {
        let index = stream.rawValue
        _ = state.wait(until: Deadline(after: timeout)) { $0.descriptors[index] < 0 || condition($0.text[index]) }
        let (text, errors, isMet, isClosed) = state.read { state in
            let texts = state.text.map { String(decoding: $0, as: UTF8.self) }
            return (texts[index], texts[1], condition(state.text[index]), state.descriptors[index] < 0)
        }
        if isMet { return text }
        throw TestSupportError(
            """
            \(path) did not \(failure()) \(isClosed ? "before it closed its output" : "within \(timeout)"), but:
            \(text)Its errors:
            \(errors)\(isClosed ? "" : "What its threads wait for:\n" + waitingThreads())
            """
        )
    }

    /// A line for each thread of its process group. See proc_pid_wchan(5) and proc_pid_syscall(5).
    func waitingThreads() -> String {
        let script = """
            for process in /proc/[0-9]*; do
                set -- $(sed 's/.*) //' $process/stat 2>&1)
                [ "$3" = "$0" ] || continue
                for thread in $process/task/*; do
                    echo "$thread $(cat $thread/comm) $(cat $thread/wchan) $(cat $thread/syscall)"
                done
            done
            """
        return (try? run("sh", ["-c", script, "\(pid)"]))?.output ?? ""
    }

    /// Whether some output contains a text. It is asked whenever there is more, and output may be long.
    static func contains(_ output: [UInt8], _ text: String) -> Bool {
        guard let first = text.utf8.first else { return true }
        return output.withUnsafeBytes { output in
            Array(text.utf8).withUnsafeBytes { text in
                var rest = output[...]
                while rest.count >= text.count, let start = rest.firstIndex(of: first),
                    output.count - start >= text.count
                {
                    let candidate = UnsafeRawBufferPointer(rebasing: output[start..<start + text.count])
                    if candidate.elementsEqual(text) { return true }
                    rest = output[(start + 1)...]
                }
                return false
            }
        }
    }

    /// The number of whole lines of some output.
    static func lineCount(_ output: [UInt8]) -> Int {
        output.withUnsafeBytes { $0.count { $0 == UInt8(ascii: "\n") } }
    }

    private static func read(into state: Monitor<State>) {
        var sources = state.read { $0.descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) } }
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while sources.contains(where: { $0.fd >= 0 }) {
            guard poll(&sources, nfds_t(sources.count), -1) > 0 else { continue }
            for index in sources.indices where sources[index].revents != 0 {
                // Under the lock, so that nothing is in neither the pipe nor the text.
                state.change { state in
                    let count = Glibc.read(sources[index].fd, &chunk, chunk.count)
                    if count > 0 {
                        state.text[index] += chunk[..<count]
                    } else if count == 0 || errno != EINTR {
                        close(sources[index].fd)
                        sources[index].fd = -1
                        state.descriptors[index] = -1
                    }
                }
            }
        }
    }

    private static func awaitEnding(of pid: pid_t, in state: Monitor<State>) {
        var information = siginfo_t()
        while waitid(P_PID, id_t(pid), &information, WEXITED | WNOWAIT) < 0 && errno == EINTR {}
        // Reaped under the lock, so that no signal reaches a process that reuses the id.
        state.change { state in
            var status: Int32 = 0
            var usage = rusage()
            wait4(pid, &status, 0, &usage)
            state.ending = (status, Int(usage.ru_maxrss) * 1024)
        }
    }
}

private func isDrained(_ descriptor: Int32) -> Bool {
    var count: Int32 = 0
    return descriptor < 0 || ioctl(descriptor, UInt(FIONREAD), &count) == 0 && count == 0
}
