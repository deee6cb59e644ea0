// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import NotifyAgent
import NotifyCoordinator
import NotifyCore

/// Which programs nap while the user is not looking at them: `nap.conf`, beside `agent.conf`. Each section `[nap]` is a
/// rule.
enum NapFile {
    static let name = "nap.conf"

    private static let maximumRules = 64
    private static let maximumApplications = 256

    /// Reads the first of the default files that exists. Without one, nothing naps.
    static func readDefault(for bus: NotifyCenter.Bus?, into configuration: inout Agent.Configuration) {
        // On the system bus it is not known what people look at.
        guard bus != .system, let path = ConfigurationFile.find(name, for: bus) else { return }
        do throws(ConfigurationError) {
            var rules: [NapRule] = []
            /// Those of sections that are something else.
            var ignored: Set<Int> = []
            configuration.faults += try ConfigurationFile(path).faults(sections: { enter($0, &rules, &ignored) }) {
                key,
                value in
                guard !rules.isEmpty else { return "a setting before the first [nap]" }
                return set(key, to: plain(value), in: &rules[rules.count - 1])
            }
            configuration.naps = rules.indices.filter { !ignored.contains($0) && !rules[$0].applications.isEmpty }
                .map { rules[$0] }
        } catch {
            configuration.faults.append(error.description)
        }
    }

    private static func enter(_ section: String, _ rules: inout [NapRule], _ ignored: inout Set<Int>) -> String? {
        guard rules.count < maximumRules else { return "too many sections; at most \(maximumRules)" }
        rules.append(NapRule())
        if plain(section) == "[nap]" { return nil }
        ignored.insert(rules.count - 1)
        return "\(Printable.quoted(section)) is not a section; use [nap]"
    }

    /// Without what is behind `#`: no value contains that.
    private static func plain(_ text: String) -> String {
        SettingsText.trimmed(text.prefix { $0 != "#" })
    }

    private static func set(_ key: String, to value: String, in rule: inout NapRule) -> String? {
        switch key {
        case "apps": return add(list(value), to: &rule)
        case "after":
            guard let delay = duration(value) else {
                return "\(Printable.quoted(value)) is not a duration up to a day, such as 10s or 1m30s"
            }
            rule.delay = delay
        case "state":
            guard let depth = NapRule.Depth(rawValue: value) else {
                return "\(Printable.quoted(value)) is not a state of naps; use background, suspended or frozen"
            }
            rule.depth = depth
        case "keep":
            for word in list(value) where word != "none" {
                guard let use = NapRule.Use(rawValue: word), NapRule.Use.configurable.contains(use) else {
                    let known = NapRule.Use.configurable.map(\.rawValue).joined(separator: ", ")
                    return "\(Printable.quoted(word)) keeps no program awake; use \(known) or none"
                }
                rule.keeps.insert(use)
            }
        case "when":
            guard value == "always" || value == "battery" else {
                return "\(Printable.quoted(value)) is not valid; use always or battery"
            }
            rule.needsBattery = value == "battery"
        default:
            return "unknown setting \(Printable.quoted(key)); the settings are apps, after, state, keep and when"
        }
        return nil
    }

    private static func add(_ applications: [String], to rule: inout NapRule) -> String? {
        guard !applications.isEmpty else { return "no application; use IDs such as org.gnome.Evolution, or *" }
        guard rule.applications.count + applications.count <= maximumApplications else {
            return "too many applications; at most \(maximumApplications)"
        }
        for id in applications where id.utf8.count > 255 || id.hasControlCharacters {
            return "\(Printable.quoted(id)) is not the ID of an application"
        }
        rule.applications += applications
        return nil
    }

    private static func list(_ value: String) -> [String] {
        value.split(separator: ",").map(SettingsText.trimmed).filter { !$0.isEmpty }
    }

    private static func duration(_ text: String) -> Int64? {
        let nanoseconds = try? Duration.nanoseconds(in: text.utf8)
        return nanoseconds.flatMap { $0 <= 86_400_000_000_000 ? $0 : nil }
    }
}
