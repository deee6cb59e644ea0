// SPDX-License-Identifier: Apache-2.0

/// Where the version 2 hierarchy of cgroups is mounted, and which part of it.
package struct CgroupMount: Equatable, Sendable {
    /// The directory.
    package let path: String
    /// The part of the hierarchy that the directory shows; `/` if it is all of it.
    package let root: String

    /// The mount of this machine.
    package static let unified = CgroupMount(inFile: "/proc/self/mountinfo")

    /// Reads what is like `/proc/self/mountinfo`. See proc_pid_mountinfo(5).
    init?(inFile path: String) {
        // A line for each mount, and there may be thousands.
        guard let text = SystemFile.text(of: path, limit: 16 << 20) else { return nil }
        self.init(mountinfo: text)
    }

    /// Finds the mount in the content.
    package init?(mountinfo: String) {
        for line in mountinfo.split(separator: "\n") {
            let fields = line.split(separator: " ")
            // "ID PARENT DEVICE ROOT PATH OPTIONS TAG… - TYPE SOURCE OPTIONS"
            guard fields.count > 6, let dash = fields[6...].firstIndex(of: "-"), dash + 1 < fields.count,
                fields[dash + 1] == "cgroup2"
            else { continue }
            path = CgroupMount.unescape(fields[4])
            root = CgroupMount.unescape(fields[3])
            return
        }
        return nil
    }

    /// The directory of a cgroup; nil if it is the root, or outside of what is mounted.
    package static func folder(of cgroup: String) -> String? {
        cgroup == "/" ? nil : unified?.folder(of: cgroup)
    }

    /// The directory of a cgroup; nil if it is outside of what is mounted.
    package func folder(of cgroup: String) -> String? {
        guard cgroup.utf8.first == UInt8(ascii: "/"), !cgroup.split(separator: "/").contains("..") else { return nil }
        if root == "/" { return path + cgroup }
        guard cgroup == root || cgroup.utf8.starts(with: (root + "/").utf8) else { return nil }
        return path + cgroup.dropFirst(root.count)
    }

    /// Spaces and similar characters are written as `\` and three octal digits.
    private static func unescape(_ text: Substring) -> String {
        var bytes: [UInt8] = []
        var rest = text.utf8
        while let byte = rest.popFirst() {
            let digits = rest.prefix(3)
            if byte == UInt8(ascii: "\\"), digits.count == 3,
                let value = UInt8(String(digits) ?? "", radix: 8)
            {
                bytes.append(value)
                rest = rest.dropFirst(3)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
