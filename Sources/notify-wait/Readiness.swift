// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc

/// Tells whoever asked that the observer is live.
enum Readiness {
    static func announce(_ settings: WaitSettings, _ diagnostics: Diagnostics) throws(StartError) {
        if let descriptor = settings.readyDescriptor {
            let result = StandardStreams.write("\n", to: descriptor)
            close(descriptor)
            if case .failed(let code) = result {
                throw StartError("can't write to file descriptor \(descriptor): \(Diagnostics.text(of: code))")
            }
        }
        if let file = settings.readyFile {
            try put(file)
        }
        if let socket = getenv("NOTIFY_SOCKET"), socket.pointee != 0, let error = tell(Argument(socket)) {
            // The variable may be left over from someone else, so this ends nothing.
            diagnostics.notice("can't tell $NOTIFY_SOCKET: \(error)")
        }
    }

    /// Puts the file in place with one rename, so that whoever sees it sees all of it.
    private static func put(_ file: Argument) throws(StartError) {
        let id = String(getpid())
        let temporary = Array(file.bytes) + Array(".\(id)\0".utf8)
        let error: Int32? = temporary.withUnsafeBufferPointer { bytes in
            bytes.withMemoryRebound(to: CChar.self) { path in
                guard let path = path.baseAddress else { return EINVAL }
                let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
                if descriptor < 0 { return errno }
                let written = StandardStreams.write(id + "\n", to: descriptor)
                close(descriptor)
                var code: Int32?
                if case .failed(let number) = written {
                    code = number
                } else if rename(path, file.start) < 0 {
                    code = errno
                }
                if code != nil { unlink(path) }
                return code
            }
        }
        if let error {
            throw StartError("can't put \(file.quoted) in place: \(Diagnostics.text(of: error))")
        }
    }

    /// Sends `READY=1` as sd_notify(3) does, whose protocol is small and fixed. Returns what went wrong.
    private static func tell(_ path: Argument) -> String? {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let name = path.bytes
        guard name[0] == UInt8(ascii: "/") || name[0] == UInt8(ascii: "@") else {
            return "\(path.quoted) is neither a path nor an abstract socket"
        }
        let isTooLong = withUnsafeMutableBytes(of: &address.sun_path) { space in
            guard name.count < space.count else { return true }
            space.copyMemory(from: name)
            // '@' stands for the NUL that an abstract name begins with.
            if space[0] == UInt8(ascii: "@") { space[0] = 0 }
            return false
        }
        if isTooLong { return "\(path.quoted) is too long" }
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return Diagnostics.text(of: errno) }
        defer { close(descriptor) }
        let offset = MemoryLayout<sockaddr_un>.offset(of: \.sun_path) ?? 2
        let length = socklen_t(offset + name.count + (name[0] == UInt8(ascii: "/") ? 1 : 0))
        let sent = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(descriptor, "READY=1", 7, Int32(MSG_NOSIGNAL), $0, length)
            }
        }
        return sent < 0 ? Diagnostics.text(of: errno) : nil
    }
}
