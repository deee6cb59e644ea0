// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyAgent
import NotifyCoordinator
import NotifyCore

/// The settings of `agent.conf`.
extension Agent.Configuration {
    /// Reads a file, or else the first of the default ones that exists; it is fine if there is none. A line that is wrong has
    /// no effect, and is noted among the faults; the others count.
    ///
    /// - Throws: if the given file can't be read at all. If that is so of a default one, it is one of the faults: without
    ///   an agent everyone on the bus would be worse off.
    mutating func read(_ file: Argument?, for bus: NotifyCenter.Bus?) throws(ConfigurationError) {
        guard let path = file ?? ConfigurationFile.find("agent.conf", for: bus) else { return }
        do throws(ConfigurationError) {
            let mistakes = try ConfigurationFile(path).faults { set($0, to: $1) }
            faults += mistakes
        } catch {
            if file != nil { throw error }
            faults.append(error.description)
        }
    }

    /// - Returns: what is wrong.
    mutating func set(_ key: String, to value: String) -> String? {
        switch key {
        case "exempt":
            guard case .application(let id) = Target(value) else { return Self.noApplication(value) }
            exemptApplications.insert(id)
        case "focus":
            return Self.set(value, in: &facts.focus)
        case "session":
            return Self.set(value, in: &facts.session)
        case "sleep":
            return Self.set(value, in: &facts.sleep)
        case "ignore":
            let names = AgentService.sourceNames + AgentService.eventSourceNames
            guard names.contains(value) else {
                return "unknown source \(Printable.quoted(value)); the sources are " + names.joined(separator: ", ")
            }
            facts.ignoredSources.insert(value)
        case "events":
            guard value == "asked" || value == "none" else {
                return "\(Printable.quoted(value)) is not valid; use asked or none"
            }
            postsEvents = value == "asked"
        case "relay": return setRelay(value)
        case "file": return addFile(value)
        case "set": return pinState(value)
        default:
            return "unknown setting \(Printable.quoted(key)); the settings are exempt, focus, session, sleep, ignore, "
                + "events, relay, file and set"
        }
        return nil
    }

    /// Says what programs in sandboxes hear: `asked`, `none`, or `app:ID PATTERN`.
    private mutating func setRelay(_ value: String) -> String? {
        if value == "asked" || value == "none" {
            relay.isOpen = value == "asked"
            return nil
        }
        let parts = SettingsText.words(of: value, most: 2)
        if let first = parts.first, case .application(let id) = Target(String(first)) {
            let pattern = parts.count == 2 ? String(parts[1]) : ""
            // If the pattern is wrong, the line still limits the application: it hears too little rather than everything.
            let prefix = NamePrefix(pattern: pattern)
            relay.limits[id, default: []].formUnion(prefix.map { [$0] } ?? [])
            if prefix != nil { return nil }
        }
        return "\(Printable.quoted(value)) is not valid; use asked, none, or app:ID and names such as com.example.*"
    }

    /// Posts a name when a file changes: `NAME PATH`.
    private mutating func addFile(_ value: String) -> String? {
        let parts = SettingsText.words(of: value, most: 2)
        guard parts.count == 2 else { return "\(Printable.quoted(value)) is not a name followed by a path" }
        let name: NotifyName
        switch ownName(parts[0]) {
        case .success(let own): name = own
        case .failure(let fault): return fault.description
        }
        var path = String(parts[1])
        if path.utf8.starts(with: "~/".utf8), let home = getenv("HOME") {
            path = String(cString: home) + path.dropFirst()
        }
        while path.utf8.count > 1, path.utf8.last == UInt8(ascii: "/") { path.removeLast() }
        guard path.utf8.first == UInt8(ascii: "/"), path.utf8.count < Int(PATH_MAX) else {
            return "\(Printable.quoted(path)) is not valid; use a path of at most \(PATH_MAX - 1) bytes that "
                + "begins with / or ~/"
        }
        guard files.count < Self.maximumFiles else { return "too many files; at most \(Self.maximumFiles)" }
        files.append((name, path))
        return nil
    }

    private static let maximumFiles = 1_024

    /// Keeps the state of a name even if it is not observed: `NAME [VALUE]`.
    private mutating func pinState(_ value: String) -> String? {
        let parts = SettingsText.words(of: value)
        guard parts.count == 1 || parts.count == 2 else {
            return "\(Printable.quoted(value)) is not a name, optionally with a value up to \(UInt64.max)"
        }
        switch ownName(parts[0]) {
        case .failure(let fault): return fault.description
        case .success(let name):
            guard !SystemEvent.all.contains(where: { $0.name == name && $0.source != nil }) else {
                return "'\(name)' is an event, whose state the agent itself sets"
            }
            guard let state = parts.count == 1 ? 0 : UInt64(parts[1]) else {
                return "\(Printable.quoted(parts[1])) is not a number from 0 to \(UInt64.max)"
            }
            pinnedStates[name] = state
            return nil
        }
    }

    /// A name that this agent may post.
    private func ownName(_ text: Substring) -> Result<NotifyName, ConfigurationError> {
        do throws(NotifyBusError) {
            let name = try NotifyName(String(text))
            if name.staysInProcess {
                return .failure(ConfigurationError("'\(name)' never leaves its process"))
            }
            guard name.isOpen(to: geteuid()) else {
                return .failure(ConfigurationError("'\(name)' belongs to another user"))
            }
            return .success(name)
        } catch {
            return .failure(ConfigurationError(error.description))
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

    private static func noApplication(_ value: String) -> String {
        "\(Printable.quoted(value)) is not an application; use app:ID, as in app:org.gnome.Maps"
    }
}
