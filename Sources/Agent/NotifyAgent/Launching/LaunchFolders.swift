// SPDX-License-Identifier: Apache-2.0

import Glibc
package import NotifyCoordinator
import NotifyCore
import NotifyNames

/// The `launch.d` directories: finds and reads their files. See notifybus-launch(5).
package struct LaunchFolders: Sendable {
    /// A file that takes effect, and the result of reading it.
    package struct File: Sendable {
        package let path: String
        package let title: String
        package let content: Result<LaunchEntry, LaunchFile.Fault>
    }

    static let suffix = ".conf"
    private static let maximumSize = 65_536
    package static let maximumEntries = 1_024
    package static let maximumNames = 4_096

    /// In descending order of precedence.
    package let paths: [String]
    private let trust: LaunchEntry.Trust

    /// - Parameter servesMachine: whether the agent serves the system bus.
    package init(servesMachine: Bool) {
        trust = servesMachine ? .root : .user
        let places: [String]
        if servesMachine {
            places = ["/etc", "/run", "/usr/local/lib", "/usr/lib"]
        } else {
            let known = SystemFile.environment(
                "XDG_CONFIG_HOME",
                "XDG_CONFIG_DIRS",
                "XDG_DATA_DIRS",
                "HOME"
            )
            func list(_ text: String) -> [String] { text.split(separator: ":").map { String($0) } }
            let own = known["XDG_CONFIG_HOME"] ?? known["HOME"].map { $0 + "/.config" }
            places =
                [own].compactMap(\.self) + list(known["XDG_CONFIG_DIRS"] ?? "/etc/xdg")
                + list(known["XDG_DATA_DIRS"] ?? "/usr/local/share:/usr/share")
        }
        var paths: [String] = []
        // By the XDG Base Directory Specification, relative paths are ignored.
        for place in places where place.utf8.first == UInt8(ascii: "/") {
            let path = place + "/notifybus/launch.d"
            if !paths.contains(path) { paths.append(path) }
        }
        self.paths = paths
    }

    /// Reads all files, sorted by name; of files with the same name only the one in the first directory.
    package func read() -> [File] {
        var found: [String: String] = [:]
        for folder in paths {
            for name in LaunchFolders.files(in: folder) where found[name] == nil { found[name] = folder + "/" + name }
        }
        var files: [File] = []
        var entries = 0
        var names = 0
        for (name, path) in found.sorted(by: { $0.key < $1.key }) {
            let title = String(name.dropLast(LaunchFolders.suffix.count))
            do throws(LaunchFile.Fault) {
                guard let text = try LaunchFolders.text(of: path) else { continue }
                try LaunchFolders.check(title)
                var entry = try LaunchFile.read(text, title: title, trust: trust)
                entry.path = path
                entries += 1
                names += entry.subjects.names.count + entry.subjects.prefixes.count
                guard entries <= LaunchFolders.maximumEntries else {
                    throw .init(line: 0, text: "too many entries; at most \(LaunchFolders.maximumEntries) are allowed")
                }
                guard names <= LaunchFolders.maximumNames else {
                    throw .init(line: 0, text: "too many names; at most \(LaunchFolders.maximumNames) are allowed")
                }
                files.append(File(path: path, title: title, content: .success(entry)))
            } catch {
                files.append(File(path: path, title: title, content: .failure(error)))
            }
        }
        return files
    }

    /// The title becomes part of the name of a unit, and systemd writes it to a file as the name for the journal.
    private static func check(_ title: String) throws(LaunchFile.Fault) {
        if title.hasControlCharacters || title.utf8.contains(UInt8(ascii: "\\")) {
            throw .init(line: 0, text: "the name of the file has control characters or '\\'")
        }
        guard ServiceManager.isShortEnough(title) else {
            throw .init(line: 0, text: "the name of the file is too long for that of a unit")
        }
    }

    private static func files(in folder: String) -> [String] {
        (SystemFile.entries(of: folder) ?? []).map(\.name)
            .filter { $0.hasSuffix(suffix) && $0.utf8.count > suffix.utf8.count }
    }

    /// - Returns: nil if the file is empty, and so only masks others.
    private static func text(of path: String) throws(LaunchFile.Fault) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
        guard descriptor >= 0 else { throw cannotBeRead(errno) }
        defer { close(descriptor) }
        var facts = stat()
        guard fstat(descriptor, &facts) == 0 else { throw cannotBeRead(errno) }
        // /dev/null, to which systemd-style masks link.
        if facts.st_mode & S_IFMT == S_IFCHR, facts.st_rdev == 0x103 { return nil }
        guard facts.st_mode & S_IFMT == S_IFREG else { throw .init(line: 0, text: "not a regular file") }
        guard facts.st_uid == 0 || facts.st_uid == geteuid() else {
            throw .init(line: 0, text: "owned by user \(facts.st_uid), not by user \(geteuid()) or root")
        }
        guard facts.st_mode & (S_IWGRP | S_IWOTH) == 0 else {
            throw .init(line: 0, text: "writable by others; use chmod go-w")
        }
        guard facts.st_size <= maximumSize else { throw .init(line: 0, text: "larger than 64 KB") }
        var bytes: [UInt8] = []
        while bytes.count <= maximumSize {
            var code: Int32 = 0
            let chunk = [UInt8](unsafeUninitializedCapacity: 4_096) { buffer, count in
                let result = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
                if result < 0 { code = errno }
                count = max(0, result)
            }
            if code == EINTR { continue }
            guard code == 0 else { throw cannotBeRead(code) }
            if chunk.isEmpty { break }
            bytes += chunk
        }
        if bytes.isEmpty { return nil }
        guard bytes.count <= maximumSize else { throw .init(line: 0, text: "larger than 64 KB") }
        guard !bytes.contains(0), let text = String(validating: bytes, as: UTF8.self) else {
            throw .init(line: 0, text: "not valid UTF-8")
        }
        return text
    }

    private static func cannotBeRead(_ code: Int32) -> LaunchFile.Fault {
        .init(line: 0, text: "can't be read: \(describe(errno: code))")
    }
}

/// Notices when files of `launch.d` are created, changed or removed.
final class LaunchWatch {
    /// How long nothing more may change before it reports that, in milliseconds: an editor writes a file in several
    /// steps.
    private static let calm: Int64 = 200

    private let paths: [String]
    private let loop: EventLoop
    private let changed: () -> Void
    private var follower: FileFollower?
    private var timer: Int?

    init(_ folders: LaunchFolders, on loop: EventLoop, changed: @escaping () -> Void) {
        (paths, self.loop, self.changed) = (folders.paths, loop, changed)
    }

    /// Without an inotify instance, the next call tries again.
    func begin() {
        guard follower == nil else { return }
        follower = try? FileFollower(on: loop) { [weak self] change in
            if case .changed = change { self?.reportWhenCalm() }
        }
        // A file that was not trusted may be now.
        for (number, path) in paths.enumerated() { follower?.follow(path, as: number, heedsAttributes: true) }
    }

    private func reportWhenCalm() {
        loop.cancel(timer)
        timer = loop.after(LaunchWatch.calm) { [weak self] in self?.changed() }
    }
}
