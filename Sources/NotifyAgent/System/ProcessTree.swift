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
            // "PARENT GROUP SESSION TERMINAL FOREGROUND …"
            let numbers = ProcessFolder(of: pid)?.numbers?.dropFirst().prefix(4).compactMap(\.self)
            guard let numbers, numbers.count == 4 else { return nil }
            (group, session, terminal, foreground) = (numbers[0], numbers[1], numbers[2], numbers[3])
        }
    }

    static func children(of pid: Int32) -> [Int32] {
        var children: [Int32] = []
        // A child belongs to the thread that has started it.
        for thread in SystemFile.entries(of: "/proc/\(pid)/task") ?? [] where children.count < maximum {
            let text = SystemFile.text(of: "/proc/\(pid)/task/\(thread.name)/children") ?? ""
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

    /// The processes of a user that have these numbers in namespaces of their own, as those in sandboxes do.
    static func namesakes(of pids: Set<Int32>, user: UInt32) -> [Int32] {
        let all = (SystemFile.entries(of: "/proc") ?? []).compactMap { Int32($0.name) }
        return all.filter { process in
            guard let folder = ProcessFolder(of: process), folder.innerNumber.map(pids.contains) == true else {
                return false
            }
            return folder.users?.effective == user
        }
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
