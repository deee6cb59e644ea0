// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// `--ready-file` on what is no regular file: it is written into, and stays what it is.
@Suite struct ReadyFileTests {
    @Test(arguments: anyBusKind(), [false, true])
    func `a FIFO gets the line, whichever end is opened first`(kind: BusKind, isReaderFirst: Bool) throws {
        let bus = try PrivateBus(kind)
        let folder = try TemporaryFolder()
        let fifo = "\(folder.path)/fifo"
        try #require(mkfifo(fifo, 0o600) == 0)
        var reader: RunningCommand?
        if isReaderFirst { reader = try TestSupport.start("cat", [fifo]) }
        let waiting = try TestSupport.start(
            productPath("notify-wait"),
            ["--address", bus.address, "-v", "--ready-file", fifo, "a"]
        )
        try waiting.waitForErrorOutput(containing: "the observer is live")
        let line = try (reader ?? TestSupport.start("cat", [fifo])).wait()
        #expect(line.output == "\(waiting.pid)\n")
        try bus.makeCenter().postOnceConnected("a")
        #expect(try waiting.wait().status == 0)
        var found = stat()
        #expect(lstat(fifo, &found) == 0 && found.st_mode & S_IFMT == S_IFIFO)
    }

    @Test(arguments: anyBusKind())
    func `a FIFO without a reader keeps neither a signal nor the time-out from ending it`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let folder = try TemporaryFolder()
        let fifo = "\(folder.path)/fifo"
        try #require(mkfifo(fifo, 0o600) == 0)
        let options = ["--address", bus.address, "-v", "--ready-file", fifo, "a"]
        #expect(try TestSupport.run(productPath("notify-wait"), options + ["-t", "0.2"]).status == 2)
        let waiting = try TestSupport.start(productPath("notify-wait"), options)
        try waiting.waitForErrorOutput(containing: "the observer is live")
        waiting.send(signal: SIGTERM)
        let result = try waiting.wait()
        #expect(result.status == 143 && !result.exitedNormally)
    }

    @Test(arguments: anyBusKind())
    func `a descriptor below /dev/fd gets the line`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let waiting = try bus.startWaiting(["--ready-file", "/dev/fd/1", "a"])
        try waiting.waitForOutput(containing: "\(waiting.pid)\n")
        try bus.makeCenter().postOnceConnected("a")
        #expect(try waiting.wait().output == "\(waiting.pid)\na\n")
    }

    @Test(arguments: anyBusKind())
    func `a link to a device stays, and so does the device`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let folder = try TemporaryFolder()
        let link = "\(folder.path)/link"
        try #require(symlink("/dev/null", link) == 0)
        let waiting = try bus.startWaiting(["--ready-file", link, "a"])
        try bus.makeCenter().postOnceConnected("a")
        #expect(try waiting.wait().status == 0)
        var found = stat()
        #expect(lstat(link, &found) == 0 && found.st_mode & S_IFMT == S_IFLNK)
        #expect(stat("/dev/null", &found) == 0 && found.st_mode & S_IFMT == S_IFCHR)
        #expect(try run("ls", ["-A", folder.path]).lines == ["link"])
        try #require(unlink(link) == 0 && symlink("/dev/full", link) == 0)
        let full = try bus.run("notify-wait", ["--ready-file", link, "a"])
        #expect(full.status == 1)
        #expect(full.errorOutput.hasSuffix("No space left on device\n"))
    }

    @Test(.enabled(if: geteuid() == 0, "only root can make devices"))
    func `root's --ready-file never replaces a device`() throws {
        let bus = try PrivateBus(busKinds[0])
        let folder = try TemporaryFolder()
        let device = "\(folder.path)/null"
        // As /dev/null.
        guard mknod(device, S_IFCHR | 0o666, dev_t(1 << 8 | 3)) == 0 else { return }
        let waiting = try bus.startWaiting(["--ready-file", device, "a"])
        try bus.makeCenter().postOnceConnected("a")
        #expect(try waiting.wait().status == 0)
        var found = stat()
        #expect(lstat(device, &found) == 0 && found.st_mode & S_IFMT == S_IFCHR)
    }
}
