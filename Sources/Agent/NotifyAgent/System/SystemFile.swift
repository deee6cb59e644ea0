// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Files of the kernel and of the machine, and this process's environment. Facts about other processes are read through
/// ``ProcessFolder``.
enum SystemFile {
    /// Few files that are read here are larger than this.
    private static let maximumSize = 65_536

    /// Variables of this process's own environment that are set and not empty.
    static func environment(_ names: String...) -> [String: String] {
        var result: [String: String] = [:]
        for name in names {
            if let value = getenv(name).map({ String(cString: $0) }), !value.isEmpty { result[name] = value }
        }
        return result
    }

    /// The content of a file; nil if it can't be opened. Bytes that are not text are replaced: only the kernel's own
    /// words are looked for, and names that others have chosen may stand beside them.
    static func text(of path: String, limit: Int = maximumSize) -> String? {
        bytes(of: path, limit: limit).map { String(decoding: $0, as: UTF8.self) }
    }

    /// The content of a file, up to a size; nil if it can't be opened.
    static func bytes(of path: String, limit: Int = maximumSize) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        return bytes(from: descriptor, limit: limit)
    }

    /// What is still to be read of a file, up to a size.
    static func bytes(from descriptor: Int32, limit: Int = maximumSize) -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < limit {
            let chunk = [UInt8](unsafeUninitializedCapacity: 4_096) { buffer, count in
                count = max(0, read(descriptor, buffer.baseAddress, buffer.count))
            }
            if chunk.isEmpty { break }
            bytes += chunk
        }
        return bytes
    }

    /// What is in a folder, except for itself and its parent; nil if it can't be read. Names that are not text are left out.
    ///
    /// - Parameter most: further ones are left out.
    static func entries(of folder: String, most: Int = .max) -> [(name: String, isFolder: Bool)]? {
        guard let stream = opendir(folder) else { return nil }
        defer { closedir(stream) }
        var entries: [(name: String, isFolder: Bool)] = []
        while entries.count < most, let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(validatingCString: $0) }
            }
            guard let name, name != ".", name != ".." else { continue }
            entries.append((name, entry.pointee.d_type == UInt8(DT_DIR)))
        }
        return entries
    }
}
