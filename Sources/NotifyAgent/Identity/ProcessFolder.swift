// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The directory of one process in `/proc`. See proc(5).
///
/// It is opened once: everything read through it concerns the same process, even if that exits and its number is
/// reused. Only files of the kernel in that directory are read, by single-component names and never through a symbolic
/// link.
package struct ProcessFolder: ~Copyable {
    /// The user IDs of a process, as named in credentials(7).
    package struct Users: Equatable, Sendable {
        package var real: UInt32
        package var effective: UInt32
        package var saved: UInt32

        /// Whether the process has only the rights of one user.
        package func areAll(_ user: UInt32) -> Bool { real == user && effective == user && saved == user }
    }

    /// No file that is read here is larger than this.
    private static let maximumFileSize = 65_536

    private let descriptor: Int32

    /// - Returns: nil if there is no such process.
    package init?(of pid: Int32) {
        guard pid > 0 else { return nil }
        let descriptor = open("/proc/\(pid)", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    /// The content of `status`; nil if the process is gone.
    package var users: Users? { text(of: "status").flatMap { ProcessFolder.users(inStatus: $0) } }

    /// When the process started, in clock ticks since boot; nil if it is gone.
    package var startTime: UInt64? { bytes(of: "stat").flatMap { ProcessFolder.startTime(inStat: $0) } }

    /// The letter of its state, such as `T` for stopped; nil if the process is gone.
    package var state: UInt8? { bytes(of: "stat").flatMap { ProcessFolder.state(inStat: $0) } }

    /// The paths of its cgroups: the unified one and systemd's own, if they exist.
    package var cgroups: [String] {
        let found = AppIdentity.cgroups(in: text(of: "cgroup") ?? "")
        return [found.unified, found.systemd].compactMap(\.self)
    }

    /// The directory of its version 2 cgroup; nil if that is the root, or can't be determined.
    package var cgroupFolder: String? {
        AppIdentity.cgroups(in: text(of: "cgroup") ?? "").unified.flatMap { CgroupMount.folder(of: $0) }
    }

    /// The same for a process whose number is known.
    package static func cgroup(of pid: Int32) -> String? {
        guard let folder = ProcessFolder(of: pid) else { return nil }
        return folder.cgroupFolder
    }

    /// Whether the root directory of the process contains the file by which Flatpak marks a sandbox; nil if that can't
    /// be determined.
    ///
    /// The file is not opened, and its content would not be trusted: a process in a user namespace can choose its root.
    package var hasFlatpakMark: Bool? {
        var facts = stat()
        if fstatat(descriptor, "root/.flatpak-info", &facts, AT_SYMLINK_NOFOLLOW) == 0 { return true }
        return errno == ENOENT ? false : nil
    }

    // MARK: - Reading

    /// "PID (NAME) STATE …", where the name, of at most 64 bytes, may contain parentheses and spaces too.
    package static func state(inStat bytes: [UInt8]) -> UInt8? {
        fields(inStat: bytes)?.first?.first
    }

    /// The 22nd field, counting the state as the third.
    package static func startTime(inStat bytes: [UInt8]) -> UInt64? {
        guard let fields = fields(inStat: bytes), fields.count > 19 else { return nil }
        return UInt64(String(decoding: fields[19], as: UTF8.self))
    }

    private static func fields(inStat bytes: [UInt8]) -> [ArraySlice<UInt8>]? {
        guard let end = bytes.lastIndex(of: UInt8(ascii: ")")) else { return nil }
        return bytes[(end + 1)...].split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\n") }
    }

    /// The line "Uid: REAL EFFECTIVE SAVED FILESYSTEM".
    package static func users(inStatus text: String) -> Users? {
        for line in text.split(separator: "\n") where line.utf8.starts(with: "Uid:".utf8) {
            let numbers = line.dropFirst(4).split { $0 == "\t" || $0 == " " }.map { UInt32($0) }
            guard numbers.count == 4, let real = numbers[0], let effective = numbers[1], let saved = numbers[2] else {
                return nil
            }
            return Users(real: real, effective: effective, saved: saved)
        }
        return nil
    }

    private func text(of file: StaticString) -> String? {
        bytes(of: file).flatMap { String(validating: $0, as: UTF8.self) }
    }

    private func bytes(of file: StaticString) -> [UInt8]? {
        let name = UnsafeRawPointer(file.utf8Start).assumingMemoryBound(to: CChar.self)
        let file = openat(descriptor, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes: [UInt8] = []
        while bytes.count < ProcessFolder.maximumFileSize {
            let chunk = [UInt8](unsafeUninitializedCapacity: 2_048) { buffer, count in
                count = max(0, read(file, buffer.baseAddress, buffer.count))
            }
            if chunk.isEmpty { break }
            bytes += chunk
        }
        return bytes.isEmpty ? nil : bytes
    }
}
