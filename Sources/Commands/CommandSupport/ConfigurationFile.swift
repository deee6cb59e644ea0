// SPDX-License-Identifier: Apache-2.0

import Glibc
package import NotifyCore

/// What is wrong with a configuration, as a sentence.
package struct ConfigurationError: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }
}

/// A file of settings: where it is, and what it says.
package struct ConfigurationFile {
    /// Its path for messages.
    package let name: String
    private let settings: SettingsText

    package init(_ text: String, named name: String) {
        self.name = name
        settings = SettingsText(text)
    }

    package init(_ path: Argument) throws(ConfigurationError) {
        let name = Printable.text(path.bytes)
        do throws(TextFile.Fault) {
            self.init(try TextFile.text(of: path.start), named: name)
        } catch {
            throw ConfigurationError("\(name) \(error)")
        }
    }

    /// The first of the default places where there is a file; nil if there is none.
    package static func find(_ file: String, for bus: NotifyCenter.Bus?) -> Argument? {
        for place in places(of: file, for: bus) {
            guard let path = Argument(copying: place) else { continue }
            if access(path.start, F_OK) == 0 || errno != ENOENT && errno != ENOTDIR { return path }
        }
        return nil
    }

    /// Where to look for a file: in `/etc` for the system bus, otherwise the user's directory and then those for all
    /// users. See the XDG Base Directory Specification.
    package static func places(of file: String, for bus: NotifyCenter.Bus?) -> [String] {
        if bus == .system { return ["/etc/notifybus/" + file] }
        let own = variable("XDG_CONFIG_HOME") ?? variable("HOME").map { $0 + "/.config" }
        let shared = (variable("XDG_CONFIG_DIRS") ?? "/etc/xdg").split(separator: ":").map { String($0) }
        // By the specification, relative paths are ignored.
        return ([own].compactMap { $0 } + shared).filter { $0.utf8.first == UInt8(ascii: "/") }
            .map { $0 + "/notifybus/" + file }
    }

    /// A variable of the environment that is set and not empty.
    package static func variable(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
    }

    /// More are only mentioned.
    private static let maximumFaults = 64

    /// Applies each line.
    ///
    /// - Parameters:
    ///   - enter: says what is wrong with a line `[SECTION]`; nil if there are no sections.
    ///   - set: says what is wrong with a key or its value.
    /// - Returns: what is wrong with the file, a sentence for each line.
    package func faults(
        sections enter: ((_ section: String) -> String?)? = nil,
        _ set: (_ key: String, _ value: String) -> String?
    ) -> [String] {
        var faults: [String] = []
        for line in settings.lines {
            let fault: String? =
                if let value = line.value {
                    set(line.key, value)
                } else if let enter, line.key.utf8.first == UInt8(ascii: "[") {
                    enter(line.key)
                } else {
                    "missing '=' in \(Printable.quoted(line.key))"
                }
            guard let fault else { continue }
            switch faults.count {
            case ..<Self.maximumFaults: faults.append(Printable.text("\(name):\(line.number): \(fault)"))
            case Self.maximumFaults: faults.append("\(name): more lines are wrong")
            default: break
            }
        }
        return faults
    }
}

/// Text in files that are read at once.
package enum TextFile {
    /// What is wrong with a file, as the rest of a sentence.
    package struct Fault: Error, CustomStringConvertible {
        package let description: String

        package init(_ description: String, errno code: Int32? = nil) {
            self.description = description + (code.map { ": " + describe(errno: $0) } ?? "")
        }
    }

    /// How long the writer of a pipe may take for its next words, in milliseconds.
    private static let patience: Int32 = 10_000

    /// Opens a regular file. Anything else, such as a FIFO, could keep a daemon waiting for good; only a descriptor
    /// that was passed on purpose, such as `/dev/stdin`, may be a pipe.
    package static func open(_ path: UnsafePointer<CChar>) throws(Fault) -> Int32 {
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
        guard descriptor >= 0 else { throw Fault("can't be read", errno: errno) }
        var facts = stat()
        guard fstat(descriptor, &facts) == 0 else {
            close(descriptor)
            throw Fault("can't be read", errno: errno)
        }
        let passed: [String] = ["/dev/stdin", "/dev/fd/", "/proc/self/fd/"]
        let isPassed = passed.contains { strncmp(path, $0, $0.utf8.count) == 0 }
        let isNull = facts.st_mode & S_IFMT == S_IFCHR && facts.st_rdev == 0x103
        switch facts.st_mode & S_IFMT {
        // read(2) has its own words for a folder.
        case S_IFREG, S_IFDIR: return descriptor
        case _ where isPassed || isNull: return descriptor
        default:
            close(descriptor)
            throw Fault("is not a regular file")
        }
    }

    package static func text(of path: UnsafePointer<CChar>, limit: Int = 1_048_576) throws(Fault) -> String {
        let descriptor = try open(path)
        defer { close(descriptor) }
        return try text(of: descriptor, limit: limit)
    }

    package static func text(of descriptor: Int32, limit: Int = 1_048_576) throws(Fault) -> String {
        var bytes: [UInt8] = []
        while bytes.count <= limit {
            var code: Int32 = 0
            let chunk = [UInt8](unsafeUninitializedCapacity: 16_384) { buffer, count in
                let result = read(descriptor, buffer.baseAddress, buffer.count)
                if result < 0 { code = errno }
                count = max(0, result)
            }
            if code == EAGAIN {
                var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                if poll(&request, 1, patience) == 0 { throw Fault("can't be read: it stays open and says nothing") }
                continue
            }
            guard code == 0 || code == EINTR else { throw Fault("can't be read", errno: code) }
            if chunk.isEmpty, code == 0 { break }
            bytes += chunk
        }
        guard bytes.count <= limit, let text = String(validating: bytes, as: UTF8.self) else {
            throw Fault("is not UTF-8 text, or is larger than \(limit / 1_048_576) MB")
        }
        return text
    }
}
