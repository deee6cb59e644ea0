// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Files of a few lines.
enum SmallFile {
    static let maximumSize = 1_048_576

    /// What is wrong with a file, as the rest of a sentence.
    struct Fault: Error, CustomStringConvertible {
        let description: String
    }

    static func text(_ path: String, limit: Int = maximumSize) throws(Fault) -> String {
        let descriptor = try open(path)
        defer { close(descriptor) }
        return try text(of: descriptor, limit: limit)
    }

    /// Checks whether it can be read.
    static func check(_ path: String) throws(Fault) -> String {
        close(try open(path))
        return path
    }

    static func open(_ path: String) throws(Fault) -> Int32 {
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)
        guard descriptor >= 0 else { throw Fault(description: "can't be read: \(String(cString: strerror(errno)))") }
        return descriptor
    }

    static func text(of descriptor: Int32, limit: Int = maximumSize) throws(Fault) -> String {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 16_384)
        while bytes.count <= limit {
            let count = read(descriptor, &chunk, chunk.count)
            if count == 0 { break }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw Fault(description: "can't be read: \(String(cString: strerror(errno)))") }
            bytes += chunk[..<count]
        }
        guard bytes.count <= limit, let text = String(validating: bytes, as: UTF8.self), !bytes.contains(0) else {
            throw Fault(description: "is not text, or is larger than \(limit / 1_048_576) MB")
        }
        return text
    }

    /// Atomically writes a file that only this user can read.
    static func replace(_ path: String, with text: String) throws(Fault) {
        let draft = path + ".new"
        let descriptor = Glibc.open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw Fault(description: "can't be written: \(String(cString: strerror(errno)))") }
        var rest = Array(text.utf8)[...]
        var code: Int32 = 0
        while !rest.isEmpty, code == 0 {
            let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 { rest = rest.dropFirst(count) } else if errno != EINTR { code = errno }
        }
        close(descriptor)
        if code == 0, rename(draft, path) != 0 { code = errno }
        guard code == 0 else {
            unlink(draft)
            throw Fault(description: "can't be written: \(String(cString: strerror(code)))")
        }
    }

    /// Creates a folder and its parents, for this user only.
    static func makeFolder(_ path: String) throws(Fault) {
        if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
        guard errno == ENOENT, let slash = path.lastIndex(of: "/"), slash != path.startIndex else {
            throw Fault(description: "can't be created: \(String(cString: strerror(errno)))")
        }
        try makeFolder(String(path[..<slash]))
        if mkdir(path, 0o700) != 0, errno != EEXIST {
            throw Fault(description: "can't be created: \(String(cString: strerror(errno)))")
        }
    }
}

/// Files that nobody else may read.
enum Secret {
    /// Reads its text, without the newline at its end.
    static func read(_ path: String) throws(SmallFile.Fault) -> String {
        let descriptor = try SmallFile.open(path)
        defer { close(descriptor) }
        var facts = stat()
        guard fstat(descriptor, &facts) == 0, facts.st_mode & 0o077 == 0 else {
            throw SmallFile.Fault(description: "can be read by others: chmod 600 it")
        }
        guard facts.st_uid == geteuid() || facts.st_uid == 0 else {
            throw SmallFile.Fault(description: "belongs to another user")
        }
        var text = try SmallFile.text(of: descriptor)
        while text.utf8.last == UInt8(ascii: "\n") || text.utf8.last == UInt8(ascii: "\r") { text.removeLast() }
        return text
    }
}
