// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Which processes a process has started, and what runs in the terminals among them. See proc(5).
enum ProcessTree {
    /// More than a program that people look at has.
    private static let maximum = 1_024

    /// A process as `/proc/PID/stat` describes it.
    struct Status {
        let group: Int32
        let session: Int32
        let terminal: Int32
        /// The process group in the foreground of its terminal.
        let foreground: Int32

        init?(of pid: Int32) {
            guard let text = SystemFile.text(of: "/proc/\(pid)/stat"), let end = text.utf8.lastIndex(of: 0x29) else {
                return nil
            }
            // "PID (NAME) STATE PARENT GROUP SESSION TERMINAL FOREGROUND …"
            let fields = text[text.utf8.index(after: end)...].split(separator: " ").dropFirst(2).prefix(4).map {
                Int32($0)
            }
            guard fields.count == 4, let group = fields[0], let session = fields[1], let terminal = fields[2],
                let foreground = fields[3]
            else { return nil }
            (self.group, self.session, self.terminal, self.foreground) = (group, session, terminal, foreground)
        }
    }

    static func children(of pid: Int32) -> [Int32] {
        guard let folder = opendir("/proc/\(pid)/task") else { return [] }
        defer { closedir(folder) }
        var children: [Int32] = []
        // A child belongs to the thread that has started it.
        while let entry = readdir(folder), children.count < maximum {
            let thread = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { Int32(String(cString: $0)) }
            }
            guard let thread, let text = SystemFile.text(of: "/proc/\(pid)/task/\(thread)/children") else { continue }
            children += text.split(separator: " ").compactMap { Int32($0) }
        }
        return children
    }

    /// A process and what it has started, without what has begun a session of its own, as shells and services do.
    static func members(of pid: Int32) -> [Int32] {
        guard let session = Status(of: pid)?.session else { return [] }
        var members = [pid]
        var next = 0
        while next < members.count, members.count < maximum {
            members += children(of: members[next]).filter { child in
                !members.contains(child) && Status(of: child)?.session == session
            }
            next += 1
        }
        return members
    }

    // MARK: - Terminals

    private static let shells: Set<String> = [
        "sh", "ash", "bash", "csh", "dash", "elvish", "fish", "ksh", "mksh", "nu", "tcsh", "xonsh", "yash", "zsh",
    ]

    /// Whether a process is a terminal in which something runs: a job in the foreground of a shell, or no shell at all.
    static func isTerminalWithJob(_ pid: Int32) -> Bool {
        children(of: pid).contains { child in
            guard let status = Status(of: child), status.session == child, status.terminal != 0 else { return false }
            if status.foreground > 0, status.foreground != status.group { return true }
            let name = SystemFile.text(of: "/proc/\(child)/comm") ?? ""
            return !shells.contains(String(name.prefix { $0 != "\n" }))
        }
    }
}
