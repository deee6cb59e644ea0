// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyCore

/// Reports that the observer is live, in every requested way.
enum Readiness {
    /// - Returns: the created file, to be removed if a signal ends the wait.
    static func announce(
        _ settings: WaitSettings,
        _ diagnostics: Diagnostics
    ) throws(CommandFailure) -> ReadyFile? {
        if let descriptor = settings.readyDescriptor {
            let result = StandardStreams.write("\n", to: descriptor)
            close(descriptor)
            if case .failed(let code) = result {
                throw CommandFailure("can't write to file descriptor \(descriptor): \(describe(errno: code))")
            }
        }
        var file: ReadyFile?
        if let path = settings.readyFile {
            do throws(Errno) {
                file = try ReadyFile(path)
            } catch {
                throw CommandFailure("can't create \(path.quoted): \(describe(errno: error.number))")
            }
        }
        if let error = NotifySocket.tell("READY=1") {
            // The variable may be a leftover, so this is not fatal.
            diagnostics.notice("can't notify $NOTIFY_SOCKET: \(error)")
        }
        return file
    }
}

/// The file of `--ready-file`, which contains the process ID.
struct ReadyFile {
    private let path: Argument
    /// What was created; nil if the path refers to something that existed before and stays: a FIFO, a device, a link.
    private let identity: Identity?

    private struct Identity: Equatable {
        let device: dev_t
        let inode: ino_t
    }

    /// A missing or regular file is replaced with a single rename, so that anyone who sees it sees all of it. Anything
    /// else is written to: replacing `/dev/null` or another program's FIFO would be vandalism.
    init(_ path: Argument) throws(Errno) {
        self.path = path
        let line = "\(getpid())\n"
        var found = stat()
        if lstat(path.start, &found) == 0, found.st_mode & S_IFMT != S_IFREG {
            identity = nil
            try ReadyFile.write(line, into: path)
        } else {
            identity = try ReadyFile.put(line, at: path)
        }
    }

    /// Removes what was created, unless it has been replaced by something else.
    func remove() {
        var found = stat()
        guard let identity, lstat(path.start, &found) == 0,
            Identity(device: found.st_dev, inode: found.st_ino) == identity
        else { return }
        unlink(path.start)
    }

    private static func put(_ line: String, at path: Argument) throws(Errno) -> Identity {
        let temporary = Array(path.bytes) + Array(".\(getpid())\0".utf8)
        let result: Result<Identity, Errno> = temporary.withUnsafeBufferPointer { bytes in
            bytes.withMemoryRebound(to: CChar.self) { temporary in
                guard let temporary = temporary.baseAddress else { return .failure(Errno(number: EINVAL)) }
                let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
                if descriptor < 0 { return .failure(Errno(number: errno)) }
                var made = stat()
                fstat(descriptor, &made)
                let written = StandardStreams.write(line, to: descriptor)
                close(descriptor)
                if case .failed(let number) = written {
                    unlink(temporary)
                    return .failure(Errno(number: number))
                }
                if rename(temporary, path.start) < 0 {
                    let number = errno
                    unlink(temporary)
                    return .failure(Errno(number: number))
                }
                return .success(Identity(device: made.st_dev, inode: made.st_ino))
            }
        }
        return try result.get()
    }

    /// Opens the existing file and writes to it, like `>` in a shell.
    private static func write(_ line: String, into path: Argument) throws(Errno) {
        while true {
            let descriptor = open(path.start, O_WRONLY | O_TRUNC | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
            if descriptor >= 0 {
                defer { close(descriptor) }
                if case .failed(let number) = StandardStreams.write(line, to: descriptor) {
                    throw Errno(number: number)
                }
                return
            }
            // A FIFO that has no reader yet. Nothing reports when it gets one, and perhaps it never does.
            guard errno == ENXIO, isFIFO(path) else { throw Errno(number: errno) }
            if StandardStreams.isDue(within: 10) { return }
        }
    }

    private static func isFIFO(_ path: Argument) -> Bool {
        let number = errno
        defer { errno = number }
        var found = stat()
        return stat(path.start, &found) == 0 && found.st_mode & S_IFMT == S_IFIFO
    }
}
