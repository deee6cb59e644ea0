// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The text for `errno`.
func lastError() -> String {
    String(cString: strerror(errno))
}

/// The text of a whole file; invalid UTF-8 is repaired.
///
/// - Throws: ``TestSupportError`` if it can't be read.
public func readFile(_ path: String) throws -> String {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw TestSupportError("Cannot read \(path): \(lastError())") }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 16_384)
    while true {
        let count = Glibc.read(descriptor, &chunk, chunk.count)
        guard count >= 0 else { throw TestSupportError("Cannot read \(path): \(lastError())") }
        if count == 0 { return String(decoding: bytes, as: UTF8.self) }
        bytes += chunk[..<count]
    }
}

/// The whole lines of a file, as of ``CommandResult/lines``.
///
/// - Throws: ``TestSupportError`` if it can't be read.
public func readLines(_ path: String) throws -> [String] {
    wholeLines(of: try readFile(path))
}

func wholeLines(of text: String) -> [String] {
    text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
}

/// Writes a file, in place of what may be in it.
public func save(_ text: String, toFile path: String) throws {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw TestSupportError("Cannot write \(path): \(lastError())") }
    defer { close(descriptor) }
    let bytes = Array(text.utf8)
    guard Glibc.write(descriptor, bytes, bytes.count) == bytes.count else {
        throw TestSupportError("Cannot write \(path): \(lastError())")
    }
}

/// The names in a folder, without `.` and `..`.
func entries(ofFolder path: String) -> [String] {
    guard let folder = opendir(path) else { return [] }
    defer { closedir(folder) }
    var names: [String] = []
    while let entry = readdir(folder) {
        let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
            String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        if name != ".", name != ".." { names.append(name) }
    }
    return names
}

/// What a symbolic link leads to, or nil if it is none.
func linkTarget(_ path: String) -> String? {
    var target = [CChar](repeating: 0, count: 4_096)
    let length = readlink(path, &target, target.count)
    return length > 0 ? String(decoding: target[..<length].map { UInt8(bitPattern: $0) }, as: UTF8.self) : nil
}

/// Hands text to the exit test that this process runs next under this title: before Swift 6.3 its closure can't capture
/// anything. A test that does so for each of its arguments is `.serialized`.
public func handOver(_ text: String, to exitTest: String) throws {
    try save(text, toFile: "/tmp/notifybus-exit-test-\(getpid())-\(exitTest)")
}

/// In the exit test: what was handed over.
public func handedOver(to exitTest: String) throws -> String {
    let path = "/tmp/notifybus-exit-test-\(getppid())-\(exitTest)"
    guard let text = try? readFile(path) else { throw TestSupportError("Nothing was handed over to \(exitTest).") }
    unlink(path)
    return text
}

/// Whether a program of this name is in `PATH`.
public func isInstalled(_ program: String) -> Bool {
    let path = getenv("PATH").map { String(cString: $0) } ?? ""
    return path.split(separator: ":").contains { access("\($0)/\(program)", X_OK) == 0 }
}

/// Whether a program can have mounts of its own: not without root, and not below chroot(2), where / is no mount.
public let canUnshareMounts = geteuid() == 0 && (try? run("unshare", ["--mount", "true"]).status) == 0

/// The Python for which the distribution installs its packages, or else the one in `PATH`.
public let python = access("/usr/bin/python3", X_OK) == 0 ? "/usr/bin/python3" : "python3"

/// A folder that is removed with the last reference to it. Every user may read it.
public final class TemporaryFolder: Sendable {
    /// Its path.
    public let path: String

    /// Creates an empty one.
    public init() throws {
        let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array("\(parent)/notifybus-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw TestSupportError("Cannot make a folder in \(parent)") }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        chmod(path, 0o755)
    }

    deinit {
        _ = try? run("rm", ["-rf", path])
    }

    /// Writes a file in it.
    public func write(_ text: String, to name: String) throws {
        try save(text, toFile: "\(path)/\(name)")
    }
}

/// Counts how often a file is opened, by any process. See inotify(7).
public final class Openings: Sendable {
    private let descriptor: Int32

    /// Counts from now on.
    public init(of path: String) throws {
        // 0x80800 is IN_CLOEXEC | IN_NONBLOCK, 0x20 IN_OPEN.
        descriptor = inotify_init1(0x80800)
        guard inotify_add_watch(descriptor, path, 0x20) >= 0 else {
            throw TestSupportError("Cannot watch \(path): \(lastError())")
        }
    }

    deinit { close(descriptor) }

    /// The bytes of events since the last call.
    public var count: Int {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        return max(0, read(descriptor, &buffer, buffer.count))
    }
}
