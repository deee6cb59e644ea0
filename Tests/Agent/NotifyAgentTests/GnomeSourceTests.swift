// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyAgent
import TestSupport
import Testing

/// The kernel's cgroups, their attributes, the agent and the observers are real. This test writes the attribute in
/// GNOME's place.
@Suite(.enabled(if: Cgroup.canBeUsed, "no version 2 cgroup can be made here, or it takes no attributes"))
struct GnomeSourceTests {
    @Test func `the program whose cgroup has the attribute set is in front; one without it is left alone`() throws {
        let scene = try Scene(.daemon, configuration: "focus = background\n")
        let (first, second, third) = (try Cgroup("one"), try Cgroup("two"), try Cgroup("three"))
        let one = try first.startObserver(scene)
        let other = try second.startObserver(scene)
        let stranger = try third.startObserver(scene)
        try scene.waitForStatus("gnome    off")
        try first.set("-1")
        try second.set("81234567")
        try scene.wait(
            for: [
                "\(one.pid) foreground gnome", "\(other.pid) background gnome", "\(stranger.pid) foreground default",
            ]
        )
        try second.set("-1")
        try first.set("91234567")
        try scene.wait(
            for: [
                "\(one.pid) background gnome", "\(other.pid) foreground gnome", "\(stranger.pid) foreground default",
            ]
        )
        // One that starts later finds the attribute set.
        let late = try second.startObserver(scene)
        try scene.wait(
            for: [
                "\(one.pid) background gnome", "\(other.pid) foreground gnome", "\(stranger.pid) foreground default",
                "\(late.pid) foreground gnome",
            ]
        )
        for command in [one, other, late] {
            command.send(signal: SIGKILL)
            _ = try command.wait(timeout: .patience)
        }
        try scene.waitForStatus("gnome    off")
        #expect(try scene.lines() == ["\(stranger.pid) foreground default"])
    }

    @Test func `ten thousand changes settle on the last`() throws {
        let scene = try Scene(.daemon, configuration: "focus = background\n")
        let folder = try Cgroup("flood")
        let observer = try folder.startObserver(scene)
        try folder.set("-1", "5", times: 5_000)
        try scene.wait(for: ["\(observer.pid) background gnome"])
    }
}

/// A version 2 cgroup for one test; it is removed once it is empty.
private final class Cgroup {
    private let folder: String

    static let canBeUsed: Bool = {
        guard let probe = try? Cgroup("probe") else { return false }
        return (try? probe.set("-1")) != nil
    }()

    init(_ name: String) throws {
        guard geteuid() == 0, let mount = CgroupMount.unified else { throw TestSupportError("There are no cgroups.") }
        folder = "\(mount.path)/notifybus-test-\(getpid())-\(UInt32.random(in: 0...UInt32.max))-\(name)"
        guard mkdir(folder, 0o755) == 0 else { throw TestSupportError("Can't make \(folder).") }
    }

    deinit {
        let folder = folder
        // This kills all processes in it, see cgroups(7). The kernel takes a moment to remove them.
        if let file = fopen("\(folder)/cgroup.kill", "w") {
            fputs("1", file)
            fclose(file)
        }
        _ = waitUntil { rmdir(folder) == 0 || errno != EBUSY }
    }

    func startObserver(_ scene: Scene) throws -> RunningCommand {
        let observer = try start(
            "/bin/sh",
            [
                "-c", "echo $$ >\"$0\" && exec \"$@\"", "\(folder)/cgroup.procs", productPath("notify-wait"),
                "--address",
                scene.bus.address, "-v", "-f", "com.example.scene",
            ],
            environment: withoutDesktop
        )
        try observer.waitForErrorOutput(containing: "the observer is live")
        return observer
    }

    /// Sets the attribute to each of the values in turn.
    func set(_ values: String..., times: Int = 1) throws {
        let program = """
            import os, sys
            for _ in range(int(sys.argv[2])):
                for value in sys.argv[3:]:
                    os.setxattr(sys.argv[1], 'user.xdg.inactive-since', value.encode())
            """
        let result = try run(python, ["-c", program, folder, "\(times)"] + values)
        guard result.status == 0 else { throw TestSupportError(result.errorOutput) }
    }
}
