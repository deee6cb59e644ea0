// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport

/// A control group with little memory, and programs in it that keep reading a larger file, so that the kernel keeps
/// dropping pages and reading them back.
final class MemoryGroup {
    /// Prints where groups with a limit can be made, and the name of the limit: the first version of control groups or
    /// the second one.
    private static let find = """
        for file in /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/*/memory.max; do
          [ -w "$file" ] && echo "$(dirname "$file") $(basename "$file")" && exit 0
        done
        exit 1
        """

    private static let place: (folder: String, limit: String)? = {
        guard let result = try? run("sh", ["-c", find]), result.status == 0 else { return nil }
        let words = result.output.split(whereSeparator: \.isWhitespace).map(String.init)
        guard words.count == 2 else { return nil }
        // In the second version a group with processes can't have subgroups with limits, but its parent may.
        let folder = words[1] == "memory.max" ? "/sys/fs/cgroup" : words[0]
        return (folder, words[1])
    }()

    static let isPossible: Bool = {
        guard let place else { return false }
        let script = "mkdir $0/$1 && [ -w $0/$1/$2 ]; code=$?; rmdir $0/$1; exit $code"
        return (try? run("sh", ["-c", script, place.folder, name(), place.limit]).status) == 0
    }()

    private static func name() -> String { "notifybus-test-\(UInt32.random(in: 0...UInt32.max))" }

    private let path: String
    private let readers: RunningCommand

    /// - Parameter folder: where the file is, not on a file system in memory.
    init(in folder: String) throws {
        guard let place = MemoryGroup.place else { throw TestSupportError("There is no memory controller.") }
        path = "\(place.folder)/\(MemoryGroup.name())"
        let script = """
            mkdir "$0" && echo 16777216 >"$0/$1" && echo $$ >"$0/cgroup.procs"
            head -c 67108864 /dev/zero >"$2/large" && sync "$2/large"
            for _ in 1 2 3; do
              (while :; do cat "$2/large"; done >/dev/null) &
            done
            echo ready
            wait
            """
        // For the case that this process is killed.
        readers = try start("timeout", ["300", "sh", "-c", script, path, place.limit, folder])
        try readers.waitForOutput(containing: "ready")
    }

    /// Ends the programs, and removes the group.
    func end() throws {
        let script = "while read -r process; do kill -KILL $process; done <$0/cgroup.procs; rmdir $0"
        _ = try waitUntil { try access(path, F_OK) != 0 || run("sh", ["-c", script, path]).status == 0 }
    }

    deinit { try? end() }
}
