// SPDX-License-Identifier: Apache-2.0

import Glibc

/// What `/proc` says of processes. See proc(5).
package enum ProcessFacts {
    /// More than this no file that is read here has.
    private static let maximumFileSize = 65_536

    /// The letter of the state, as `T` for stopped; nil if the process is gone.
    package static func state(of pid: Int32) -> UInt8? {
        withUnsafeTemporaryAllocation(byteCount: 512, alignment: 1) { buffer in
            let descriptor = open("/proc/\(pid)/stat", O_RDONLY | O_CLOEXEC)
            guard descriptor >= 0 else { return nil }
            defer { close(descriptor) }
            let count = read(descriptor, buffer.baseAddress, buffer.count)
            guard count > 0 else { return nil }
            return state(inStat: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        }
    }

    /// "PID (NAME) STATE …", where the name, of at most 64 bytes, may hold parentheses and blanks too.
    package static func state(inStat bytes: UnsafeRawBufferPointer) -> UInt8? {
        guard let end = bytes.lastIndex(of: UInt8(ascii: ")")), end + 2 < bytes.count else { return nil }
        return bytes[end + 2]
    }

    /// The program's file name, for people.
    package static func program(of pid: Int32) -> String {
        (text(ofFile: "/proc/\(pid)/comm") ?? "").filter { $0 != "\n" }
    }

    /// The user that runs the process; nil if it is gone.
    package static func user(of pid: Int32) -> UInt32? {
        var facts = stat()
        return stat("/proc/\(pid)", &facts) == 0 ? facts.st_uid : nil
    }

    /// The application that a process belongs to; empty if nothing says so.
    package static func application(of pid: Int32) -> String {
        let (unified, systemd) = AppIdentity.cgroups(in: text(ofFile: "/proc/\(pid)/cgroup") ?? "")
        return text(ofFile: "/proc/\(pid)/root/.flatpak-info").flatMap { AppIdentity.application(ofFlatpakInfo: $0) }
            ?? [unified, systemd].lazy.compactMap { $0.flatMap { AppIdentity.application(ofCgroup: $0) } }.first ?? ""
    }

    /// The login session whose cgroup a process is in; nil if it is in none.
    package static func session(of pid: Int32) -> String? {
        let (unified, systemd) = AppIdentity.cgroups(in: text(ofFile: "/proc/\(pid)/cgroup") ?? "")
        return [unified, systemd].lazy.compactMap { $0.flatMap { AppIdentity.session(ofCgroup: $0) } }.first
    }

    /// The folder of a process's version 2 cgroup; nil if that is the root, or can't be found.
    package static func cgroup(of pid: Int32) -> String? {
        AppIdentity.cgroups(in: text(ofFile: "/proc/\(pid)/cgroup") ?? "").unified.flatMap(folder(of:))
    }

    private static func folder(of cgroup: String) -> String? {
        cgroup == "/" ? nil : CgroupMount.unified?.folder(of: cgroup)
    }

    /// Variables of this process's own environment, as far as they are set and not empty.
    static func environment(_ names: String...) -> [String: String] {
        var result: [String: String] = [:]
        for name in names {
            if let value = getenv(name).map({ String(cString: $0) }), !value.isEmpty { result[name] = value }
        }
        return result
    }

    /// A file of the kernel's; nil if it can't be read or is no text.
    package static func text(ofFile path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        while bytes.count < maximumFileSize {
            let chunk = [UInt8](unsafeUninitializedCapacity: 4_096) { buffer, count in
                count = max(0, read(descriptor, buffer.baseAddress, buffer.count))
            }
            if chunk.isEmpty { break }
            bytes += chunk
        }
        return String(validating: bytes, as: UTF8.self)
    }
}
