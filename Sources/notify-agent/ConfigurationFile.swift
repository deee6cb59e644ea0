// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyAgent
import NotifyCoordinator
import NotifyCore

struct ConfigurationError: Error {
    let message: String
}

/// Settings, one per line as `KEY = VALUE`; empty lines and those that begin with `#` are ignored.
enum ConfigurationFile {
    private static let maximumSize = 1_048_576

    /// Reads the first of the default files that exists; it is fine if there is none. If it can't be read, that is one of
    /// the faults: without an agent everyone on the bus would be worse off.
    static func readDefault(for bus: NotifyCenter.Bus?, into configuration: inout Agent.Configuration) {
        for path in ConfigurationFile.places(for: bus) {
            guard let file = Argument(copying: path), access(file.start, F_OK) == 0 || !isMissing(errno) else {
                continue
            }
            do throws(ConfigurationError) {
                try read(file, into: &configuration)
            } catch {
                configuration.faults.append(error.message)
            }
            return
        }
    }

    private static func isMissing(_ code: Int32) -> Bool { code == ENOENT || code == ENOTDIR }

    /// Where to look for the file: in `/etc` for the system bus, otherwise the user's directory and then those for all
    /// users. See the XDG Base Directory Specification.
    static func places(for bus: NotifyCenter.Bus?) -> [String] {
        if bus == .system { return ["/etc/notifybus/agent.conf"] }
        func variable(_ name: String) -> String? {
            getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
        }
        let own = variable("XDG_CONFIG_HOME") ?? variable("HOME").map { $0 + "/.config" }
        let shared = (variable("XDG_CONFIG_DIRS") ?? "/etc/xdg").split(separator: ":").map { String($0) }
        // By the specification, relative paths are ignored.
        return ([own].compactMap { $0 } + shared).filter { $0.utf8.first == UInt8(ascii: "/") }
            .map { $0 + "/notifybus/agent.conf" }
    }

    /// Reads a file. A line that is wrong has no effect, and is noted among the faults; the others count.
    ///
    /// - Throws: if the file can't be read at all.
    static func read(_ file: Argument, into configuration: inout Agent.Configuration) throws(ConfigurationError) {
        let name = Printable.text(file.bytes)
        let text = try contents(file, name)
        // A carriage return and the line feed behind it are one character.
        let lines = text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
        for (index, line) in lines.enumerated() {
            guard let fault = apply(line, to: &configuration) else { continue }
            switch configuration.faults.count {
            case ..<maximumFaults: configuration.faults.append(Printable.text("\(name):\(index + 1): \(fault)"))
            case maximumFaults: configuration.faults.append("\(name): more lines are wrong")
            default: break
            }
        }
    }

    /// More are only mentioned.
    private static let maximumFaults = 64

    /// - Returns: what is wrong with the line.
    static func apply(_ line: Substring, to configuration: inout Agent.Configuration) -> String? {
        let line = trimmed(line)
        if line.isEmpty || line.first == "#" { return nil }
        guard let equals = line.firstIndex(of: "=") else {
            return "missing '=' in \(quoted(line))"
        }
        let key = trimmed(line[..<equals])
        let value = trimmed(line[line.index(after: equals)...])
        return set(String(key), to: String(value), in: &configuration)
    }

    private static func set(_ key: String, to value: String, in configuration: inout Agent.Configuration) -> String? {
        switch key {
        case "exempt":
            guard case .application(let id) = Target(value) else { return noApplication(value) }
            configuration.exemptApplications.insert(id)
        case "focus":
            return set(value, in: &configuration.facts.focus)
        case "session":
            return set(value, in: &configuration.facts.session)
        case "sleep":
            return set(value, in: &configuration.facts.sleep)
        case "ignore":
            let names = AgentService.sourceNames + AgentService.eventSourceNames
            guard names.contains(value) else {
                return "unknown source \(quoted(value)); the sources are " + names.joined(separator: ", ")
            }
            configuration.facts.ignoredSources.insert(value)
        case "events":
            guard value == "asked" || value == "none" else {
                return "\(quoted(value)) is not valid; use asked or none"
            }
            configuration.postsEvents = value == "asked"
        case "relay": return setRelay(value, in: &configuration)
        case "file": return addFile(value, to: &configuration)
        case "set": return pinState(value, in: &configuration)
        default:
            return "unknown setting \(quoted(key)); the settings are exempt, focus, session, sleep, ignore, "
                + "events, relay, file and set"
        }
        return nil
    }

    /// Says what programs in sandboxes hear: `asked`, `none`, or `app:ID PATTERN`.
    private static func setRelay(_ value: String, in configuration: inout Agent.Configuration) -> String? {
        let parts = value.split(maxSplits: 1, whereSeparator: isBlank)
        if parts.count == 2, case .application(let id) = Target(String(parts[0])),
            let prefix = NamePrefix(pattern: String(trimmed(parts[1])))
        {
            var rules = configuration.relay ?? RelayRules()
            rules.limits[id, default: []].insert(prefix)
            configuration.relay = rules
            return nil
        }
        guard value == "asked" || value == "none" else {
            return "\(quoted(value)) is not valid; use asked, none, or app:ID and names such as com.example.*"
        }
        configuration.relay = value == "asked" ? RelayRules() : nil
        return nil
    }

    /// Posts a name when a file changes: `NAME PATH`.
    private static func addFile(_ value: String, to configuration: inout Agent.Configuration) -> String? {
        let parts = value.split(maxSplits: 1, whereSeparator: isBlank)
        guard parts.count == 2 else { return "\(quoted(value)) is not a name followed by a path" }
        let name: NotifyName
        switch ownName(parts[0], configuration) {
        case .success(let own): name = own
        case .failure(let fault): return fault.message
        }
        var path = String(trimmed(parts[1]))
        if path.utf8.starts(with: "~/".utf8), let home = getenv("HOME") {
            path = String(cString: home) + path.dropFirst()
        }
        while path.utf8.count > 1, path.utf8.last == UInt8(ascii: "/") { path.removeLast() }
        guard path.utf8.first == UInt8(ascii: "/"), path.utf8.count < Int(PATH_MAX) else {
            return "\(quoted(path)) is not valid; use a path of at most \(PATH_MAX - 1) bytes that "
                + "begins with / or ~/"
        }
        guard configuration.files.count < maximumFiles else { return "too many files; at most \(maximumFiles)" }
        configuration.files.append((name, path))
        return nil
    }

    private static let maximumFiles = 1_024

    /// Keeps the state of a name even if nobody observes it: `NAME [VALUE]`.
    private static func pinState(_ value: String, in configuration: inout Agent.Configuration) -> String? {
        let parts = value.split(whereSeparator: isBlank)
        guard parts.count == 1 || parts.count == 2 else {
            return "\(quoted(value)) is not a name, optionally with a value up to \(UInt64.max)"
        }
        switch ownName(parts[0], configuration) {
        case .failure(let fault): return fault.message
        case .success(let name):
            guard let state = parts.count == 1 ? 0 : UInt64(parts[1]) else {
                return "\(quoted(parts[1])) is not a number from 0 to \(UInt64.max)"
            }
            configuration.pinnedStates[name] = state
            return nil
        }
    }

    /// A name that this agent may post.
    private static func ownName(
        _ text: Substring,
        _ configuration: Agent.Configuration
    ) -> Result<NotifyName, ConfigurationError> {
        do throws(NotifyBusError) {
            let name = try NotifyName(String(text))
            if name.staysInProcess {
                return .failure(ConfigurationError(message: "'\(name)' never leaves its process"))
            }
            guard name.isOpen(to: geteuid()) else {
                return .failure(ConfigurationError(message: "'\(name)' belongs to another user"))
            }
            return .success(name)
        } catch {
            return .failure(ConfigurationError(message: error.description))
        }
    }

    /// Sets which programs a kind of fact applies to. The same words serve the focus, the session and sleep.
    private static func set(_ value: String, in followers: inout FactPolicy.Followers) -> String? {
        switch value {
        case "asked": followers.others = .asking
        case "background": followers.others = .everyone
        case "ignore": followers.others = .nobody
        default:
            guard case .application(let id) = Target(value) else {
                return noApplication(value) + ", asked, background or ignore"
            }
            followers.applications.insert(id)
        }
        return nil
    }

    /// Quoted, on one line, and no longer than a message should be.
    private static func quoted(_ text: some StringProtocol) -> String {
        var text = String(text)
        return "'" + text.withUTF8 { Printable.text(UnsafeRawBufferPointer($0), limit: 60) } + "'"
    }

    private static func noApplication(_ value: String) -> String {
        "\(quoted(value)) is not an application; use app:ID, as in app:org.gnome.Maps"
    }

    private static func isBlank(_ character: Character) -> Bool {
        character == " " || character == "\t" || character == "\r"
    }

    private static func trimmed(_ text: Substring) -> Substring {
        var text = text.drop(while: isBlank)
        while let last = text.last, isBlank(last) { text.removeLast() }
        return text
    }

    private static func contents(_ file: Argument, _ name: String) throws(ConfigurationError) -> String {
        let descriptor = open(file.start, O_RDONLY | O_CLOEXEC | O_NOCTTY)
        guard descriptor >= 0 else {
            throw ConfigurationError(message: "can't read \(name): \(Diagnostics.text(of: errno))")
        }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        while bytes.count <= maximumSize {
            var code: Int32 = 0
            let chunk = [UInt8](unsafeUninitializedCapacity: 16_384) { buffer, count in
                let result = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
                if result < 0 { code = errno }
                count = max(0, result)
            }
            guard code == 0 || code == EINTR else {
                throw ConfigurationError(message: "can't read \(name): \(Diagnostics.text(of: code))")
            }
            if chunk.isEmpty, code == 0 { break }
            bytes += chunk
        }
        guard bytes.count <= maximumSize, let text = String(validating: bytes, as: UTF8.self) else {
            throw ConfigurationError(message: "\(name) is not UTF-8 text, or is larger than 1 MB")
        }
        return text
    }
}
