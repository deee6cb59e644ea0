// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyNames

/// Which directories must be watched, and for what, to miss nothing that happens to a path: every directory on the way,
/// every symbolic link and its target, the file itself, and for anything missing, the nearest existing directory.
struct PathTrail: Equatable {
    enum Role: Hashable {
        /// It is traversed: only its own removal or move counts.
        case passage
        /// An entry that is missing or is a symbolic link: whether it is created, removed or replaced.
        case entry([UInt8])
        /// The file itself: also whether it is written.
        case file([UInt8])
        /// The file by whatever name: it may be written by another one of its names, or be mounted here from elsewhere.
        case itself
        /// Everything in it counts: it is a monitored directory.
        case contents
    }

    struct Step: Hashable {
        let folder: String
        let role: Role
    }

    /// The identity of what is on the way: other links or another file are another answer to the same path.
    struct Finding: Equatable {
        struct Place: Equatable {
            let device: UInt64
            let inode: UInt64
        }

        var links: [Place] = []
        var file: Place?
    }

    private(set) var steps: [Step] = []
    private(set) var finding = Finding()
    /// Why the path leads nowhere that can be watched; nil if it does, or if something is merely missing.
    private(set) var obstacle: String?

    private static let maximumLinks = 40

    /// Finds out what currently exists.
    ///
    /// - Parameter path: absolute.
    init(following path: String) {
        var rest = PathTrail.parts(Array(path.utf8))
        var current = ""
        while let part = rest.popLast() {
            if part.elementsEqual(".".utf8) { continue }
            if part.elementsEqual("..".utf8) {
                // By bytes: a slash with an accent is one character.
                current = String(current[..<(current.utf8.lastIndex(of: UInt8(ascii: "/")) ?? current.startIndex)])
                continue
            }
            guard let name = String(validating: part, as: UTF8.self) else {
                add(current, .entry(part))
                obstacle = "\(path) leads to a file whose name is not UTF-8"
                return
            }
            let place = current + "/" + name
            var status = stat()
            guard lstat(place, &status) == 0 else {
                let code = errno
                add(current, .entry(part))
                if code != ENOENT, code != ENOTDIR { obstacle = "\(place) can't be reached: \(describe(errno: code))" }
                return
            }
            let found = Finding.Place(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
            switch status.st_mode & S_IFMT {
            case S_IFLNK:
                add(current, .entry(part))
                finding.links.append(found)
                guard finding.links.count <= PathTrail.maximumLinks else {
                    obstacle = "\(path) has too many symbolic links"
                    return
                }
                guard let target = PathTrail.target(of: place) else { return }
                if target.first == UInt8(ascii: "/") { current = "" }
                rest += PathTrail.parts(target)
            case S_IFDIR where !rest.isEmpty:
                current = place
                add(current, .passage)
            default:
                add(current, .file(part))
                finding.file = found
                switch status.st_mode & S_IFMT {
                case S_IFDIR: add(place, .contents)
                case S_IFREG where rest.isEmpty: add(place, .itself)
                default: break
                }
                // If it is not a directory, it can't be traversed, but it may become one.
                if !rest.isEmpty { finding.file = nil }
                return
            }
        }
        // It leads to the root, or to a directory through "..".
        add(current, .contents)
        finding.file = Finding.Place(device: 0, inode: 0)
    }

    private mutating func add(_ folder: String, _ role: Role) {
        steps.append(Step(folder: folder.isEmpty ? "/" : folder, role: role))
    }

    /// The last one first.
    private static func parts(_ path: [UInt8]) -> [[UInt8]] {
        path.split(separator: UInt8(ascii: "/")).reversed().map { Array($0) }
    }

    private static func target(of link: String) -> [UInt8]? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(PATH_MAX)) { buffer in
            guard let start = buffer.baseAddress else { return nil }
            let count = readlink(link, start, buffer.count)
            return count > 0 ? buffer[..<count].map { UInt8(bitPattern: $0) } : nil
        }
    }
}
