// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator

/// Stops whole programs that nap, and lets them continue: by the cgroup of their unit if they have one, otherwise process by
/// process.
///
/// Nothing is stopped that would stay stopped if the agent were killed: see ``ThawGuard``.
final class ProgramFreezer {
    private struct Stop {
        /// The directories of units.
        var folders: [String] = []
        var processes: [ProcessHandle] = []
    }

    private let thawGuard: ThawGuard
    private let watchdogs: Watchdogs
    private let logger: Logger
    private var stops: [NapProgram: Stop] = [:]
    /// Those that are to be stopped, unless the service manager minds: by a number, as this may begin again meanwhile.
    private var waiting: [NapProgram: UInt64] = [:]
    private var lastWait: UInt64 = 0

    init(_ thawGuard: ThawGuard, _ watchdogs: Watchdogs, logger: Logger) {
        (self.thawGuard, self.watchdogs, self.logger) = (thawGuard, watchdogs, logger)
        thawGuard.hasGone = { [unowned self] in
            logger.warning("lost the process that would let programs continue; they run on while they nap")
            for program in stops.keys.sorted() { thaw(program) }
        }
    }

    /// - Parameter completion: called with those that it has stopped one by one, unless the program was thawed before.
    func freeze(_ program: NapProgram, _ processes: [ProcessID], then completion: @escaping ([ProcessID]) -> Void) {
        let handles = processes.compactMap { id -> ProcessHandle? in
            guard case .success((let process, _)) = ProcessHandle.open(id.pid, user: program.user),
                process.key.start == id.startTime
            else { return nil }
            return process
        }
        lastWait += 1
        let number = lastWait
        waiting[program] = number
        watchdogs.check(handles) { [self] obstacle in
            guard waiting[program] == number else { return }
            waiting[program] = nil
            if let obstacle {
                let metadata: Logger.Metadata = ["program": "\(program)"]
                return logger.notice("a program that naps is not frozen: \(obstacle)", metadata: metadata)
            }
            completion(freeze(program, handles))
        }
    }

    private func freeze(_ program: NapProgram, _ processes: [ProcessHandle]) -> [ProcessID] {
        var stop = Stop()
        for process in processes where process.mayBeStopped(by: program.user) {
            if let folder = unit(of: process, program) {
                if !stop.folders.contains(folder), freeze(folder, program.user) { stop.folders.append(folder) }
            } else {
                freezeTree(process, program, &stop)
            }
        }
        guard !stop.folders.isEmpty || !stop.processes.isEmpty else {
            logger.notice("a program that naps can't be frozen", metadata: ["program": "\(program)"])
            return []
        }
        stops[program] = stop
        logger.info("froze a program that naps", metadata: ["program": "\(program)"])
        return stop.processes.map { ProcessID($0) }
    }

    func thaw(_ program: NapProgram) {
        waiting[program] = nil
        guard let stop = stops.removeValue(forKey: program) else { return }
        for folder in stop.folders {
            let code = Freezer.write("0", to: folder + "/cgroup.freeze")
            if code != 0, code != ENOENT {
                logger.error("can't thaw a program", metadata: ["program": "\(program)", "error": "\(code)"])
            }
            thawGuard.remove(.cgroup(folder))
        }
        for process in stop.processes {
            _ = process.signal(SIGCONT)
            thawGuard.remove(process.asStopped)
        }
        logger.info("thawed a program that napped", metadata: ["program": "\(program)"])
    }

    /// The program that was stopped with this; nil if there is none.
    func program(stoppedAs thing: StoppedThing) -> NapProgram? {
        stops.first { _, stop in
            stop.folders.contains { .cgroup($0) == thing } || stop.processes.contains { $0.asStopped == thing }
        }?.key
    }

    // MARK: - By unit

    /// The directory of the program's unit.
    private func unit(of process: ProcessHandle, _ program: NapProgram) -> String? {
        guard !program.application.isEmpty, let cgroup = process.read({ $0.unifiedCgroup }) else { return nil }
        let parts = cgroup.split(separator: "/")
        guard let last = parts.lastIndex(where: { AppIdentity.application(ofUnit: String($0)) == program.application })
        else { return nil }
        return CgroupMount.folder(of: "/" + parts[...last].joined(separator: "/"))
    }

    private func freeze(_ folder: String, _ user: UInt32) -> Bool {
        guard belongs(folder, to: user),
            // If something else has frozen it, that will also thaw it.
            SystemFile.text(of: folder + "/cgroup.freeze") == "0\n", thawGuard.add(.cgroup(folder), .nap)
        else { return false }
        if Freezer.write("1", to: folder + "/cgroup.freeze") == 0 {
            // A set-user-ID program may have been executed in the meantime.
            if belongs(folder, to: user) { return true }
            _ = Freezer.write("0", to: folder + "/cgroup.freeze")
        }
        thawGuard.remove(.cgroup(folder))
        return false
    }

    /// Whether everything in a unit, and below it, has only the rights of a user, and nothing of it is needed. One that has
    /// more than a program that people look at is not looked through.
    private func belongs(_ folder: String, to user: UInt32) -> Bool {
        var looks = ProcessTree.maximum
        return belongs(folder, to: user, depth: 4, &looks)
    }

    private func belongs(_ folder: String, to user: UInt32, depth: Int, _ looks: inout Int) -> Bool {
        guard depth > 0, let members = SystemFile.text(of: folder + "/cgroup.procs") else { return false }
        for line in members.split(separator: "\n") {
            looks -= 1
            guard looks >= 0, let pid = Int32(line), pid > 1, pid != ProcessHandle.own else { return false }
            // One that has ended in the meantime is no obstacle.
            if let process = ProcessFolder(of: pid), process.users?.areAll(user) == false { return false }
        }
        guard let entries = SystemFile.entries(of: folder, most: ProcessTree.maximum),
            entries.count < ProcessTree.maximum
        else { return false }
        for entry in entries where entry.isFolder {
            looks -= 1
            guard looks >= 0, belongs(folder + "/" + entry.name, to: user, depth: depth - 1, &looks) else {
                return false
            }
        }
        return true
    }

    // MARK: - By process

    private func freezeTree(_ process: ProcessHandle, _ program: NapProgram, _ stop: inout Stop) {
        // While it is being stopped it may start others.
        for _ in 0..<4 {
            var isComplete = true
            for pid in ProcessTree.members(of: process.pid) {
                if stop.processes.contains(where: { $0.pid == pid }) { continue }
                guard pid > 1, pid != ProcessHandle.own,
                    case .success((let member, _)) = ProcessHandle.open(pid, user: program.user),
                    // If something else has stopped it, that will also let it continue.
                    member.mayBeStopped(by: program.user), member.state != UInt8(ascii: "T"),
                    thawGuard.add(member.asStopped, .nap)
                else { continue }
                isComplete = false
                if member.signal(SIGSTOP) == 0, member.mayBeStopped(by: program.user) {
                    stop.processes.append(member)
                } else {
                    _ = member.signal(SIGCONT)
                    thawGuard.remove(member.asStopped)
                }
            }
            if isComplete { return }
        }
    }
}
