// SPDX-License-Identifier: Apache-2.0

import CLinux
import CommandSupport
import Glibc

/// A run of the command that has begun: the command, and all that it has started, wherever that has gone. It lasts until
/// the last of them has ended.
struct StartedRun {
    private let processes: linux_kept

    /// Starts a command, found in `$PATH`, as a shell would. It is in a process group of its own; reading from a terminal
    /// there would stop it, so a terminal is replaced by empty input.
    ///
    /// - Parameter variables: `NAME=value` each, in addition to our environment.
    /// - Returns: an error number if it can't be started.
    static func start(_ command: [Argument], _ variables: [String]) -> Result<StartedRun, Errno> {
        var processes = linux_kept()
        let status = Child.withExecution(of: command, variables) { arguments, environment in
            linux_start_kept(arguments, environment, isatty(STDIN_FILENO) == 1, &processes)
        }
        return status == 0 ? .success(StartedRun(processes: processes)) : .failure(Errno(number: status))
    }

    /// How the command has ended, once nothing is left of the run; nil until then.
    func reap() -> Child.End? {
        guard let end = Child(pid: processes.keeper).reap() else { return nil }
        defer { close(processes.result) }
        var status: Int32 = 0
        let count = read(processes.result, &status, MemoryLayout<Int32>.size)
        // The keeper says nothing if it was killed.
        return count == MemoryLayout<Int32>.size ? Child.End(status) : end
    }

    /// Signals all of it.
    func signal(_ number: Int32) {
        guard let descendants = ProcessList.descendants(of: processes.keeper) else {
            kill(-processes.command, number)
            return
        }
        // All of the group at once. When nothing of the run is in it any more, its number may be another group's.
        if descendants.contains(where: { $0.group == processes.command }) { kill(-processes.command, number) }
        for process in descendants where process.group != processes.command { kill(process.pid, number) }
    }
}

/// The processes in `/proc`.
enum ProcessList {
    struct Entry {
        let pid: pid_t
        let parent: pid_t
        let group: pid_t
    }

    /// Each after its parent; nil if `/proc` is not mounted.
    static func descendants(of ancestor: pid_t) -> [Entry]? {
        guard let all else { return nil }
        var children: [pid_t: [Entry]] = [:]
        for entry in all { children[entry.parent, default: []].append(entry) }
        var found = children.removeValue(forKey: ancestor) ?? []
        var next = 0
        while next < found.count {
            found += children.removeValue(forKey: found[next].pid) ?? []
            next += 1
        }
        return found
    }

    private static var all: [Entry]? {
        guard let folder = opendir("/proc") else { return nil }
        defer { closedir(folder) }
        var entries: [Entry] = []
        while let item = readdir(folder) {
            let name = withUnsafePointer(to: &item.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if let pid = pid_t(name), let entry = entry(of: pid) { entries.append(entry) }
        }
        // Where it is mounted, it has at least this process.
        return entries.isEmpty ? nil : entries
    }

    private static func entry(of pid: pid_t) -> Entry? {
        let descriptor = open("/proc/\(pid)/stat", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        return withUnsafeTemporaryAllocation(byteCount: 512, alignment: 1) { buffer in
            let count = read(descriptor, buffer.baseAddress, buffer.count)
            // The name in parentheses may contain anything; after it come the state, the parent and the group.
            guard count > 0, let end = buffer[..<count].lastIndex(of: UInt8(ascii: ")")) else { return nil }
            let fields = buffer[(end + 1)..<count].split(separator: UInt8(ascii: " "))
            guard fields.count > 2, let parent = pid_t(String(decoding: fields[1], as: UTF8.self)),
                let group = pid_t(String(decoding: fields[2], as: UTF8.self))
            else { return nil }
            return Entry(pid: pid, parent: parent, group: group)
        }
    }
}
