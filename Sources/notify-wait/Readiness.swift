// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc

/// Tells whoever asked that the observer is live.
enum Readiness {
    /// - Parameter isInterrupted: called now and then while it waits for a reader; when that says so, it gives up.
    /// - Returns: the file that was put in place, which goes if a signal ends the wait.
    static func announce(
        _ settings: WaitSettings,
        _ diagnostics: Diagnostics,
        isInterrupted: () -> Bool
    ) throws(StartError) -> ReadyFile? {
        if let descriptor = settings.readyDescriptor {
            let result = StandardStreams.write("\n", to: descriptor)
            close(descriptor)
            if case .failed(let code) = result {
                throw StartError("can't write to file descriptor \(descriptor): \(Diagnostics.text(of: code))")
            }
        }
        var file: ReadyFile?
        if let path = settings.readyFile {
            do throws(Errno) {
                file = try ReadyFile(path, isInterrupted: isInterrupted)
            } catch {
                throw StartError("can't create \(path.quoted): \(Diagnostics.text(of: error.number))")
            }
        }
        if let error = ServiceManager.tell("READY=1") {
            // The variable may be left over from someone else, so this ends nothing.
            diagnostics.notice("can't notify $NOTIFY_SOCKET: \(error)")
        }
        return file
    }
}

/// The file of `--ready-file`, with the process id in it.
struct ReadyFile {
    private let path: Argument
    /// What was put in place; nil if the path is of something that was there before and stays: a FIFO, a device, a link.
    private let identity: Identity?

    private struct Identity: Equatable {
        let device: dev_t
        let inode: ino_t
    }

    /// Where there is nothing, or a regular file, that is replaced with one rename, so that whoever sees it sees all of
    /// it. Anything else is written into: to replace `/dev/null` or somebody's FIFO would be vandalism.
    init(_ path: Argument, isInterrupted: () -> Bool) throws(Errno) {
        self.path = path
        let line = "\(getpid())\n"
        var found = stat()
        if lstat(path.start, &found) == 0, found.st_mode & S_IFMT != S_IFREG {
            identity = nil
            try ReadyFile.write(line, into: path, isInterrupted)
        } else {
            identity = try ReadyFile.put(line, at: path)
        }
    }

    /// Removes what was put in place, unless something else is there by now.
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

    /// Opens what is there and writes into it, as `>` of a shell does.
    private static func write(_ line: String, into path: Argument, _ isInterrupted: () -> Bool) throws(Errno) {
        while true {
            let descriptor = open(path.start, O_WRONLY | O_TRUNC | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
            if descriptor >= 0 {
                defer { close(descriptor) }
                if case .failed(let number) = StandardStreams.write(line, to: descriptor) {
                    throw Errno(number: number)
                }
                return
            }
            // A FIFO that nobody reads yet. Nothing tells when somebody does.
            guard errno == ENXIO, isFIFO(path) else { throw Errno(number: errno) }
            if isInterrupted() { return }
        }
    }

    private static func isFIFO(_ path: Argument) -> Bool {
        let number = errno
        defer { errno = number }
        var found = stat()
        return stat(path.start, &found) == 0 && found.st_mode & S_IFMT == S_IFIFO
    }
}
