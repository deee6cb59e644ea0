// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import NotifyCore

/// Something that an agent has stopped, and that must not stay stopped.
package enum StoppedThing: Hashable, Sendable {
    /// The directory of a cgroup.
    case cgroup(String)
    /// - Parameter start: when the process started, by which it is told from another with its number.
    case process(Int32, start: UInt64)

    /// As the end of a line.
    var text: String {
        switch self {
        case .cgroup(let folder): "cgroup \(folder)"
        case .process(let pid, let start): "process \(pid) \(start)"
        }
    }

    init?(_ text: Substring) {
        let parts = text.split(separator: " ", maxSplits: 1)
        guard parts.count == 2 else { return nil }
        if parts[0] == "cgroup" {
            // Nothing else is written to, whatever the line says.
            guard let mount = CgroupMount.unified?.path, parts[1].utf8.starts(with: (mount + "/").utf8),
                !parts[1].split(separator: "/").contains("..")
            else { return nil }
            self = .cgroup(String(parts[1]))
            return
        }
        let numbers = parts[1].split(separator: " ")
        guard parts[0] == "process", numbers.count == 2, let pid = Int32(numbers[0]), pid > 1,
            let start = UInt64(numbers[1])
        else { return nil }
        self = .process(pid, start: start)
    }

    /// Lets it continue.
    func thaw() {
        switch self {
        case .cgroup(let folder): _ = Freezer.write("0", to: folder + "/cgroup.freeze")
        case .process(let pid, let start):
            let descriptor = linux_pidfd_open(pid)
            guard descriptor >= 0 else { return }
            defer { close(descriptor) }
            if let process = ProcessFolder(of: pid), process.startTime == start {
                linux_pidfd_signal(descriptor, SIGCONT)
            }
        }
    }

    /// Whether it still exists.
    fileprivate var isThere: Bool {
        switch self {
        case .cgroup(let folder): access(folder, F_OK) == 0
        case .process(let pid, let start): ProcessFolder(of: pid)?.startTime == start
        }
    }

    /// Whether a process is stopped with it.
    fileprivate func contains(_ pid: Int32) -> Bool {
        switch self {
        case .cgroup(let folder):
            ProcessFolder.cgroup(of: pid).map { ($0 + "/").utf8.starts(with: (folder + "/").utf8) } ?? false
        case .process(let own, let start): own == pid && ProcessFolder(of: pid)?.startTime == start
        }
    }

    // MARK: - Signals

    /// The signals that ask a program to end.
    private static let endings = [SIGHUP, SIGINT, SIGQUIT, SIGTERM].reduce(UInt64(0)) { $0 | 1 << UInt64($1 - 1) }

    /// Whether a process of it has been asked to end, which it can't do while it is stopped.
    var isToEnd: Bool {
        switch self {
        case .process(let pid, let start):
            guard let process = ProcessFolder(of: pid), process.startTime == start else { return false }
            return process.pendingSignals.map { $0 & StoppedThing.endings != 0 } ?? false
        case .cgroup(let folder):
            var looks = ProcessTree.maximum
            return StoppedThing.isToEnd(folder, depth: 4, &looks)
        }
    }

    private static func isToEnd(_ folder: String, depth: Int, _ looks: inout Int) -> Bool {
        guard depth > 0 else { return false }
        for line in SystemFile.text(of: folder + "/cgroup.procs")?.split(separator: "\n") ?? [] {
            looks -= 1
            guard looks >= 0 else { return false }
            let signals = Int32(line).flatMap { ProcessFolder(of: $0)?.pendingSignals } ?? 0
            if signals & endings != 0 { return true }
        }
        for entry in SystemFile.entries(of: folder, most: ProcessTree.maximum) ?? [] where entry.isFolder {
            looks -= 1
            if looks >= 0, isToEnd(folder + "/" + entry.name, depth: depth - 1, &looks) { return true }
        }
        return false
    }
}

/// Why something was stopped.
package enum StopReason: String, Sendable { case nap, person }

/// The folder in which agents note what they stop, before they stop it: everything in the file of an agent that is gone
/// is to continue. See ``MarkFile``.
///
/// Each agent has a file `frozen.PID.START.N`, for its process and when that started: so nothing is to be cleared away, whatever
/// ends an agent, and agents of several buses don't get in each other's way. Things that an agent leaves stopped for
/// the next one belong to the process that guards them: see ``ThawGuard``.
package struct MarkFolder: Sendable {
    /// More agents than any user has had killed.
    private static let maximumFiles = 256
    /// How long the wait between two looks is, in milliseconds.
    private static let pause: Int32 = 50

    let path: String

    /// - Parameter servesMachine: whether its agent is the one of the system bus.
    package init(servesMachine: Bool) {
        let user = geteuid()
        let runtime = SystemFile.environment("XDG_RUNTIME_DIR")["XDG_RUNTIME_DIR"]
        path =
            if !servesMachine, let runtime, runtime.utf8.first == UInt8(ascii: "/") {
                runtime + "/notifybus"
            } else if user == 0 {
                "/run/notifybus"
            } else if access("/run/user/\(user)", W_OK) == 0 {
                "/run/user/\(user)/notifybus"
            } else {
                "/tmp/notifybus-\(user)"
            }
    }

    init(path: String) { self.path = path }

    /// - Returns: its descriptor; -1 if there is none, or if anybody else could have written there.
    func open(creates: Bool = false) -> Int32 {
        if creates { mkdir(path, 0o700) }
        let descriptor = Glibc.open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { return -1 }
        var facts = stat()
        if fstat(descriptor, &facts) == 0, facts.st_uid == geteuid(), facts.st_mode & 0o077 == 0 { return descriptor }
        close(descriptor)
        return -1
    }

    /// Lets everything continue that agents had stopped which are gone, unless another one has marked it, too.
    ///
    /// - Returns: what that was, with who had wanted it.
    @discardableResult
    package func thawAbandoned() -> [StoppedThing: StopReason] {
        let folder = open()
        guard folder >= 0 else { return [:] }
        defer { close(folder) }
        var things: [StoppedThing: StopReason] = [:]
        let files = self.files
        let abandoned = files.filter { !isOfLivingAgent($0) }
        if abandoned.isEmpty { return [:] }
        let marked = self.things(in: files.filter(isOfLivingAgent), folder)
        for name in abandoned {
            for (thing, reason) in MarkFile.read(name, in: folder) where marked[thing] == nil {
                thing.thaw()
                things[thing] = reason
            }
            unlinkat(folder, name, 0)
        }
        return things
    }

    /// Waits until other agents have marked what an agent has left to this process, and lets the rest continue.
    ///
    /// - Parameter limit: how long to wait, in milliseconds.
    func thawUnlessAdopted(within limit: Int64) {
        let folder = open()
        guard folder >= 0 else { return }
        defer { close(folder) }
        let own = files.filter { MarkFile.agent(of: $0)?.pid == ProcessHandle.own && isOfLivingAgent($0) }
        let things = self.things(in: own, folder)
        /// What no living agent says that it has stopped. Looked at each time: while it stands in the file of this process,
        /// nothing else lets it continue, not even after the death of an agent that had taken it over.
        func abandoned() -> [StoppedThing: StopReason] {
            let marked = self.things(in: files.filter { !own.contains($0) && isOfLivingAgent($0) }, folder)
            return things.filter { marked[$0.key] == nil && $0.key.isThere }
        }
        let end = MonotonicTime.now + limit
        while !abandoned().isEmpty, MonotonicTime.now < end { poll(nil, 0, MarkFolder.pause) }
        for name in own { unlinkat(folder, name, 0) }
        // Afterwards: until then others have relied on this process.
        for thing in abandoned().keys { thing.thaw() }
    }

    private func things(in files: [String], _ folder: Int32) -> [StoppedThing: StopReason] {
        files.reduce(into: [:]) { $0.merge(MarkFile.read($1, in: folder)) { $1 } }
    }

    /// Whether any agent's file is left.
    func hasMarks(of agent: Int32) -> Bool { files.contains { MarkFile.agent(of: $0)?.pid == agent } }

    private var files: [String] {
        let entries = SystemFile.entries(of: path, most: 4 * MarkFolder.maximumFiles) ?? []
        return entries.map(\.name).filter { MarkFile.agent(of: $0) != nil }
    }

    private func isOfLivingAgent(_ name: String) -> Bool {
        guard let agent = MarkFile.agent(of: name), let process = ProcessFolder(of: agent.pid),
            process.startTime == agent.start, let state = process.state
        else { return false }
        // One that has ended may be waited for later.
        return !"ZXx".utf8.contains(state)
    }
}

extension [StoppedThing: StopReason] {
    /// Whether a process is one of them, or in one.
    package func contain(_ pid: Int32) -> Bool { keys.contains { $0.contains(pid) } }
}

/// The file of an agent in a ``MarkFolder``: a line for each thing before it is stopped, and one after it continues. It exists
/// while something is stopped.
struct MarkFile {
    private static let maximumSize = 1 << 20
    private static let prefix = "frozen."

    private let folder: MarkFolder
    private var descriptor: Int32 = -1
    private var name = ""
    /// Counts the files: one that has become too long has a successor.
    private var count = 0
    private var size = 0
    private(set) var things: [StoppedThing: StopReason] = [:]

    init(_ folder: MarkFolder) { self.folder = folder }

    /// - Returns: whether it has been written.
    mutating func add(_ thing: StoppedThing, _ reason: StopReason) -> Bool {
        guard !thing.text.utf8.contains(UInt8(ascii: "\n")) else { return false }
        if descriptor < 0 || size > MarkFile.maximumSize / 2, !begin() { return false }
        guard write("+\(reason.rawValue) \(thing.text)\n") else { return false }
        things[thing] = reason
        return true
    }

    mutating func remove(_ thing: StoppedThing) {
        guard things.removeValue(forKey: thing) != nil else { return }
        if things.isEmpty { return end() }
        // A file that is full, or whose last line is incomplete, is replaced.
        if size <= MarkFile.maximumSize / 2 || !begin() { _ = write("-\(thing.text)\n") }
    }

    /// Gives the file to another process, as if that had stopped everything.
    ///
    /// - Returns: whether it has it now; the marks are forgotten here then.
    mutating func give(to process: Int32) -> Bool {
        let directory = folder.open()
        guard directory >= 0 else { return false }
        defer { close(directory) }
        guard let start = ProcessFolder(of: process)?.startTime,
            renameat(directory, name, directory, "\(MarkFile.prefix)\(process).\(start).\(count)") == 0
        else { return false }
        close(descriptor)
        (descriptor, size, things) = (-1, 0, [:])
        return true
    }

    private mutating func end() {
        let directory = folder.open()
        if directory >= 0 {
            unlinkat(directory, name, 0)
            close(directory)
        }
        close(descriptor)
        (descriptor, size) = (-1, 0)
    }

    /// Begins a file with what is stopped.
    private mutating func begin() -> Bool {
        let directory = folder.open(creates: true)
        guard directory >= 0, let start = ProcessFolder(of: ProcessHandle.own)?.startTime else { return false }
        defer { close(directory) }
        let (oldDescriptor, oldName) = (descriptor, name)
        name = "\(MarkFile.prefix)\(ProcessHandle.own).\(start).\(count)"
        count += 1
        let flags = O_CREAT | O_EXCL | O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC
        descriptor = openat(directory, name, flags, 0o600)
        size = 0
        let isWritten =
            descriptor >= 0
            && things.sorted { $0.key.text < $1.key.text }.allSatisfy { write("+\($1.rawValue) \($0.text)\n") }
            && size <= MarkFile.maximumSize / 2
        guard isWritten else {
            if descriptor >= 0 {
                unlinkat(directory, name, 0)
                close(descriptor)
            }
            (descriptor, name, size) = (oldDescriptor, oldName, MarkFile.maximumSize)
            return false
        }
        if oldDescriptor >= 0 {
            unlinkat(directory, oldName, 0)
            close(oldDescriptor)
        }
        return true
    }

    private mutating func write(_ line: String) -> Bool {
        let bytes = Array(line.utf8)
        guard Glibc.write(descriptor, bytes, bytes.count) == bytes.count else {
            // The line may be incomplete. The next one goes into a new file.
            size = MarkFile.maximumSize
            return false
        }
        size += bytes.count
        return true
    }

    // MARK: - Reading

    /// The agent whose file has this name; nil if it is something else.
    static func agent(of name: String) -> (pid: Int32, start: UInt64)? {
        guard name.utf8.starts(with: prefix.utf8) else { return nil }
        let parts = name.dropFirst(prefix.utf8.count).split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let pid = Int32(parts[0]), let start = UInt64(parts[1]) else { return nil }
        return (pid, start)
    }

    /// What is stopped according to a file. The last line may be incomplete: then it was never acted on.
    static func read(_ name: String, in folder: Int32) -> [StoppedThing: StopReason] {
        let file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return [:] }
        defer { close(file) }
        var facts = stat()
        guard fstat(file, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG, facts.st_uid == geteuid() else { return [:] }
        var things: [StoppedThing: StopReason] = [:]
        let text = String(decoding: SystemFile.bytes(from: file, limit: maximumSize), as: UTF8.self)
        for line in text.split(separator: "\n") {
            let rest = line.dropFirst()
            if line.first == "-", let thing = StoppedThing(rest) { things[thing] = nil }
            let words = rest.split(separator: " ", maxSplits: 1)
            if line.first == "+", words.count == 2, let reason = StopReason(rawValue: String(words[0])),
                let thing = StoppedThing(words[1])
            {
                things[thing] = reason
            }
        }
        return things
    }
}
