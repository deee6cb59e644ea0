// SPDX-License-Identifier: Apache-2.0

public import Glibc

// Facts from proc(5). A process that is gone has 0 of everything.

/// The resident memory of a process's own, in bytes (`RssAnon`). How many pages of its files are resident is for the
/// kernel to say.
public func residentBytes(of pid: pid_t) -> Int {
    statusNumber("RssAnon", inFile: "/proc/\(pid)/status") * 1024
}

/// The peak resident memory of a running process since exec, in bytes, with the pages of its files (`VmHWM`).
public func peakResidentBytes(of pid: pid_t) -> Int {
    statusNumber("VmHWM", inFile: "/proc/\(pid)/status") * 1024
}

/// The number of threads of a process.
public func threadCount(of pid: pid_t) -> Int {
    statusNumber("Threads", inFile: "/proc/\(pid)/status")
}

/// How often the threads of a process have gone to sleep voluntarily: once for each time they woke.
///
/// It does not increase when a busy machine preempts them.
public func wakeUps(of pid: pid_t) -> Int { wakeUpsOfThreads(in: pid).values.reduce(0, +) }

/// A thread in `/proc`.
public struct ThreadID: Hashable, Sendable {
    /// Its number.
    public let number: String
    /// Its name, with at most 15 bytes.
    public let name: String
}

/// The same for each thread of a process.
public func wakeUpsOfThreads(in pid: pid_t) -> [ThreadID: Int] {
    var counts: [ThreadID: Int] = [:]
    for thread in entries(ofFolder: "/proc/\(pid)/task") {
        let folder = "/proc/\(pid)/task/\(thread)"
        let name = (try? readFile("\(folder)/comm"))?.split(separator: "\n").first.map(String.init) ?? ""
        counts[ThreadID(number: thread, name: name)] = statusNumber(
            "voluntary_ctxt_switches",
            inFile: "\(folder)/status"
        )
    }
    return counts
}

/// Why ``wakeUps(of:)`` says nothing about a program built like this one; nil if it does.
public let wakeUpObstacle: String? =
    dlsym(nil, "__tsan_init") == nil ? nil : "ThreadSanitizer's own thread wakes up ten times a second."

/// How many descriptors a process has open, without the one that this process needs to count its own.
public func openDescriptors(of pid: pid_t) -> Int {
    entries(ofFolder: "/proc/\(pid)/fd").count - (pid == getpid() ? 1 : 0)
}

/// What the open descriptors of a process lead to, as in `/proc/PID/fd`: paths, `socket:[1234]`, `anon_inode:inotify` …
public func openFiles(of pid: pid_t) -> [String] {
    entries(ofFolder: "/proc/\(pid)/fd").compactMap { linkTarget("/proc/\(pid)/fd/\($0)") }
}

/// The state of a process: `R`, `S`, `D`, `T` (stopped), `Z` (not reaped yet) …, or nil if it is gone.
public func processState(_ pid: pid_t) -> Character? {
    processStat(pid) { $0.state }
}

/// A process, known by its number and by when it has started: another process may have the same number soon.
public struct ProcessIdentity: Sendable, CustomStringConvertible {
    private let pid: pid_t
    /// In ticks; nil if there was no such process.
    private let startTime: UInt64?

    /// The process that has this number now.
    public init(_ pid: pid_t) {
        self.pid = pid
        startTime = processStat(pid) { $0.startTime } ?? nil
    }

    /// Whether it has ended; it need not have been reaped.
    public var hasEnded: Bool {
        processStat(pid) { $0.state == "Z" || $0.startTime != startTime } ?? true
    }

    /// Its number.
    public var description: String { "process \(pid)" }
}

/// The real, effective and saved user id of a process; empty if it is gone.
public func userIDs(of pid: pid_t) -> [UInt32] {
    for line in (try? readFile("/proc/\(pid)/status"))?.split(separator: "\n") ?? [] where line.hasPrefix("Uid:") {
        return line.split(whereSeparator: \.isWhitespace).dropFirst().prefix(3).compactMap { UInt32($0) }
    }
    return []
}

/// A process's children whose program has this name.
public func children(of parent: pid_t, named name: String) -> [pid_t] {
    // /proc/PID/task/*/children would be shorter, but kernels without checkpoint support do not have it.
    entries(ofFolder: "/proc").compactMap { pid_t($0) }.filter { pid in
        processStat(pid) { $0.parent == parent && $0.name.elementsEqual(name.utf8) } ?? false
    }
}

/// What stat in /proc says about a process.
private struct ProcessStat {
    let name: UnsafeRawBufferPointer
    let state: Character
    let parent: pid_t
    /// What comes after the parent.
    let others: Slice<UnsafeRawBufferPointer>

    var startTime: UInt64? {
        // It is field 22, and the first of these is field 5.
        let fields = others.split(separator: UInt8(ascii: " "), maxSplits: 18)
        return fields.count > 17 ? UInt64(String(decoding: fields[17], as: UTF8.self)) : nil
    }
}

/// Passes on what stat says about a process, if there is one. Without a string: a look for children reads all of /proc.
private func processStat<Result>(_ pid: pid_t, _ body: (ProcessStat) -> Result) -> Result? {
    let descriptor = open("/proc/\(pid)/stat", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    return withUnsafeTemporaryAllocation(byteCount: 512, alignment: 1) { buffer -> Result? in
        let line = UnsafeRawBufferPointer(
            rebasing: buffer[..<max(0, read(descriptor, buffer.baseAddress, buffer.count))]
        )
        // "PID (NAME) STATE PPID …", where the name may contain anything, including parentheses and spaces.
        guard let open = line.firstIndex(of: UInt8(ascii: "(")), let close = line.lastIndex(of: UInt8(ascii: ")")),
            close + 4 < line.count
        else { return nil }
        let fields = line[(close + 4)...]
        let digits = fields.prefix { $0 != UInt8(ascii: " ") }
        guard let parent = pid_t(String(decoding: digits, as: UTF8.self)) else { return nil }
        let name = UnsafeRawBufferPointer(rebasing: line[(open + 1)..<close])
        let state = Character(UnicodeScalar(line[close + 2]))
        return body(ProcessStat(name: name, state: state, parent: parent, others: fields[digits.endIndex...]))
    }
}

private func statusNumber(_ key: String, inFile path: String) -> Int {
    for line in (try? readFile(path))?.split(separator: "\n") ?? [] where line.hasPrefix(key + ":") {
        return line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) } ?? 0
    }
    return 0
}
