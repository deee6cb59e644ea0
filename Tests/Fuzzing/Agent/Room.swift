// SPDX-License-Identifier: Apache-2.0

import FuzzDriver
import Glibc

/// What a run needs of the machine: a folder with entries of launch.d, and processes that the agent may stop.
enum Room {
    /// Made once.
    static let path: String = {
        var template = Array("/tmp/notifybus-fuzz-XXXXXX".utf8CString)
        let isMade = template.withUnsafeMutableBufferPointer { buffer in
            buffer.baseAddress.flatMap { mkdtemp($0) } != nil
        }
        guard isMade else { fail("no folder") }
        let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let folder = path + "/notifybus/launch.d"
        for part in [path + "/notifybus", folder] { mkdir(part, 0o700) }
        write("prefix = com.example\nrun = /bin/true a b\non-busy = restart\nfrom = anyone\n", to: folder + "/run.conf")
        write("name = com.example.a\nstart = fuzz.service\nlimit = 2/1s\nsettle = 1ms\n", to: folder + "/unit.conf")
        write("name = com.example.b\nactivate = org.example.Fuzz\nfrom = root\n", to: folder + "/activate.conf")
        setenv("XDG_CONFIG_HOME", path, 1)
        setenv("XDG_CONFIG_DIRS", "/nonexistent", 1)
        setenv("XDG_DATA_DIRS", "/nonexistent", 1)
        for variable in ["DISPLAY", "SWAYSOCK", "WAYLAND_DISPLAY", "NOTIFYBUS_ADDRESS"] { unsetenv(variable) }
        atexit { Room.leave() }
        return path
    }()

    /// Two of our own that do nothing. They end with this process, whose end of their input is closed then.
    static let processes: [UInt32] = (0..<2).map { _ in
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { fail("no pipe") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        posix_spawn_file_actions_adddup2(&actions, ends[0], 0)
        defer {
            posix_spawn_file_actions_destroy(&actions)
            close(ends[0])
        }
        var pid: pid_t = 0
        let cat = strdup("cat")
        defer { free(cat) }
        var arguments: [UnsafeMutablePointer<CChar>?] = [cat, nil]
        guard posix_spawnp(&pid, "cat", &actions, nil, &arguments, environ) == 0 else { fail("no cat") }
        return UInt32(pid)
    }

    private static func write(_ text: String, to path: String) {
        guard let file = fopen(path, "w") else { fail("cannot write \(path)") }
        fputs(text, file)
        fclose(file)
    }

    private static func leave() {
        for file in [
            "bus", "notifybus/launch.d/run.conf", "notifybus/launch.d/unit.conf", "notifybus/launch.d/activate.conf",
        ] {
            unlink(path + "/" + file)
        }
        for folder in ["/notifybus/launch.d", "/notifybus", ""] { rmdir(path + folder) }
    }
}
