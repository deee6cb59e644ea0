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
        if let error = ServiceManager.tell("READY=1") {
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
}
