// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Which processes a process has started, and what runs in the terminals among them. See proc(5).
///
/// How many these are, and how many threads they have, is up to them. All of it is read on the agent's loop, so there are
/// limits: more than a program that people look at has.
enum ProcessTree {
    /// How many processes a program may have.
    static let maximum = 1_024
    /// How many threads and processes are looked at to find them.
    static let maximumLooks = 4_096
    /// How many have started one another in turn.
    private static let maximumDepth = 64

    /// A process as `/proc/PID/stat` describes it.
    struct Status {
        let parent: Int32
        let group: Int32
        let session: Int32
        let terminal: Int32
        /// The process group in the foreground of its terminal.
        let foreground: Int32
        let startTime: UInt64

        init?(of pid: Int32) {
            guard let folder = ProcessFolder(of: pid), let start = folder.startTime else { return nil }
            // "PARENT GROUP SESSION TERMINAL FOREGROUND …"
            let numbers = folder.numbers?.prefix(5).compactMap(\.self)
            guard let numbers, numbers.count == 5 else { return nil }
            (parent, group, session) = (numbers[0], numbers[1], numbers[2])
            (terminal, foreground, startTime) = (numbers[3], numbers[4], start)
        }
    }

    /// - Parameter looks: how many threads and children this may look at; those that it has looked at are subtracted.
    private static func children(of pid: Int32, _ looks: inout Int) -> [Int32] {
        var children: [Int32] = []
        // A child belongs to the thread that has started it.
        for thread in SystemFile.entries(of: "/proc/\(pid)/task", most: looks) ?? [] where looks > 0 {
            looks -= 1
            let text = SystemFile.text(of: "/proc/\(pid)/task/\(thread.name)/children") ?? ""
            let found = text.split(separator: " ").prefix(looks).compactMap { Int32($0) }
            looks -= found.count
            children += found
        }
        return children
    }

    /// A process and what it has started, without what has begun a session of its own, as shells and services do.
    static func members(of pid: Int32, looks limit: Int = maximumLooks) -> [Int32] {
        guard let session = Status(of: pid)?.session else { return [] }
        var (members, looks, next) = ([pid], limit, 0)
        while next < members.count, members.count < maximum, looks > 0 {
            for child in children(of: members[next], &looks) where members.count < maximum {
                if !members.contains(child), Status(of: child)?.session == session { members.append(child) }
            }
            next += 1
        }
        return members
    }

    /// Those among whose `members` a process is, by their numbers; and when they started.
    static func ancestors(of pid: Int32) -> [Int32: UInt64] {
        guard var status = Status(of: pid) else { return [:] }
        var ancestors: [Int32: UInt64] = [:]
        while ancestors.count < maximumDepth, let parent = Status(of: status.parent), parent.session == status.session {
            ancestors[status.parent] = parent.startTime
            status = parent
        }
        return ancestors
    }

    /// The processes of a user that have these numbers in namespaces of their own, as those in sandboxes do.
    static func namesakes(of pids: Set<Int32>, user: UInt32, looks limit: Int = maximumLooks) -> [Int32] {
        var (namesakes, looks) = ([Int32](), limit)
        for process in (SystemFile.entries(of: "/proc") ?? []).compactMap({ Int32($0.name) }) where looks > 0 {
            // Other users' processes use up nothing of the limit. One that hides from others belongs to root here.
            var facts = stat()
            guard stat("/proc/\(process)", &facts) == 0, facts.st_uid == user || facts.st_uid == 0 else { continue }
            looks -= 1
            guard let folder = ProcessFolder(of: process), folder.innerNumber.map(pids.contains) == true,
                folder.users?.effective == user
            else { continue }
            namesakes.append(process)
        }
        return namesakes
    }

    // MARK: - Terminals

    private static let shells: Set<String> = [
        "sh", "ash", "bash", "csh", "dash", "elvish", "fish", "ksh", "mksh", "nu", "tcsh", "xonsh", "yash", "zsh",
    ]

    /// Whether a process is a terminal in which something runs: a job in the foreground of a shell, or no shell at all.
    static func isTerminalWithJob(_ pid: Int32) -> Bool {
        var looks = maximumLooks
        return children(of: pid, &looks).contains { child in
            guard let status = Status(of: child), status.session == child, status.terminal != 0 else { return false }
            if status.foreground > 0, status.foreground != status.group { return true }
            let name = SystemFile.text(of: "/proc/\(child)/comm") ?? ""
            return !shells.contains(String(name.prefix { $0 != "\n" }))
        }
    }
}
