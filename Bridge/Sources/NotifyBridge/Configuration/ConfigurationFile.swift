// SPDX-License-Identifier: Apache-2.0

import Glibc

/// `bridge.conf`: one setting per line as `KEY = VALUE`; empty lines and lines that begin with `#` are ignored.
package enum ConfigurationFile {
    private static let keys = [
        "broker", "ca-file", "catch-up", "cert-file", "export", "import", "keepalive", "key-file", "password-file",
        "rate",
        "realm", "user",
    ]

    /// The first configuration file that exists, if none was named; nil if there is none.
    package static func find(forSystem isSystem: Bool) -> String? {
        places(forSystem: isSystem).first { access($0, F_OK) == 0 || errno != ENOENT && errno != ENOTDIR }
    }

    /// The places to search: the machine's, or the user's and then those for all users. See the XDG Base Directory
    /// Specification.
    package static func places(forSystem isSystem: Bool) -> [String] {
        if isSystem { return ["/etc/notifybus/bridge.conf"] }
        let own = Environment["XDG_CONFIG_HOME"] ?? Environment["HOME"].map { $0 + "/.config" }
        let shared = (Environment["XDG_CONFIG_DIRS"] ?? "/etc/xdg").split(separator: ":").map(String.init)
        // The specification says to ignore relative paths.
        return ([own].compactMap { $0 } + shared).filter { $0.utf8.first == UInt8(ascii: "/") }
            .map { $0 + "/notifybus/bridge.conf" }
    }

    package static func read(_ path: String) throws(ConfigurationError) -> Settings {
        let text: String
        do {
            text = try SmallFile.text(path)
        } catch {
            throw ConfigurationError("can't read \(path): \(error)")
        }
        return try parse(text, named: path)
    }

    package static func parse(_ text: String, named file: String) throws(ConfigurationError) -> Settings {
        var draft = Settings.Draft()
        // Not split by characters: a carriage return and a newline would be one.
        let lines = text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated() {
            if let fault = apply(Substring(line), to: &draft) {
                throw ConfigurationError("\(file):\(index + 1): \(Printable.text(fault))")
            }
        }
        do {
            return try Settings(draft)
        } catch {
            throw ConfigurationError("\(file) \(error)")
        }
    }

    /// - Returns: what is wrong with the line.
    private static func apply(_ line: Substring, to draft: inout Settings.Draft) -> String? {
        let line = trimmed(line)
        if line.isEmpty || line.first == "#" { return nil }
        guard let equals = line.firstIndex(of: "=") else { return "missing '=' in '\(line)'" }
        let key = String(trimmed(line[..<equals]))
        let value = String(trimmed(line[line.index(after: equals)...]))
        guard keys.contains(key) else {
            return "unknown setting '\(key)'; the settings are \(keys.joined(separator: ", "))"
        }
        if value.isEmpty { return "'\(key)' has no value" }
        switch key {
        case "export": return add(value, to: &draft.exports)
        case "import": return add(value, to: &draft.imports)
        case "broker":
            return set(
                &draft.broker,
                BrokerAddress(value),
                key,
                "'\(value)' is not a broker; use mqtt://HOST, mqtts://HOST or a path"
            )
        case "realm":
            return set(
                &draft.realm,
                isRealm(value) ? value : nil,
                key,
                "a realm consists of 1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-'"
            )
        case "user": return set(&draft.user, value, key, "")
        case "password-file":
            return setFromFile(&draft.password, value, key) { (path) throws(SmallFile.Fault) in try Secret.read(path) }
        case "ca-file":
            return setFromFile(&draft.tls.authorities, value, key) { (path) throws(SmallFile.Fault) in
                try SmallFile.check(path)
            }
        case "cert-file":
            return setFromFile(&draft.tls.certificate, value, key) { (path) throws(SmallFile.Fault) in
                try SmallFile.check(path)
            }
        case "key-file":
            return setFromFile(&draft.tls.key, value, key) { (path) throws(SmallFile.Fault) in
                _ = try Secret.read(path)
                return path
            }
        case "catch-up":
            return set(&draft.catchesUp, ["yes": true, "no": false][value], key, "'catch-up' is yes or no")
        case "keepalive":
            return set(&draft.keepalive, seconds(value), key, "'keepalive' is 0, or 5s to 12h, as in 60s")
        default:
            let rate = Int(value).flatMap { (1...1_000_000).contains($0) ? $0 : nil }
            return set(&draft.rate, rate, key, "'rate' is 1 to 1000000 names a second")
        }
    }

    private static func add(_ value: String, to rules: inout [NameRule]) -> String? {
        do {
            rules.append(try NameRule(value))
            return nil
        } catch {
            return "'\(value)' \(error.reason)"
        }
    }

    private static func set<Value>(_ setting: inout Value?, _ value: Value?, _ key: String, _ fault: String) -> String?
    {
        guard let value else { return fault }
        guard setting == nil else { return "'\(key)' is set twice" }
        setting = value
        return nil
    }

    private static func setFromFile(
        _ setting: inout String?,
        _ path: String,
        _ key: String,
        _ read: (String) throws(SmallFile.Fault) -> String
    ) -> String? {
        guard path.utf8.first == UInt8(ascii: "/") else { return "'\(key)' needs an absolute path" }
        do {
            return set(&setting, try read(path), key, "")
        } catch {
            return "\(path) \(error)"
        }
    }

    private static func isRealm(_ text: String) -> Bool {
        1...64 ~= text.utf8.count
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"):
                    true
                default: "._-".utf8.contains(byte)
                }
            }
    }

    /// `0`, or a whole number of seconds, minutes or hours from 5 s to 12 h.
    private static func seconds(_ text: String) -> Int32? {
        if text == "0" { return 0 }
        let units: [Character: Int32] = ["s": 1, "m": 60, "h": 3_600]
        guard let unit = text.last.flatMap({ units[$0] }), let number = Int32(text.dropLast()),
            text.utf8.first != UInt8(ascii: "+"),
            5...43_200 ~= number.multipliedReportingOverflow(by: unit).partialValue,
            !number.multipliedReportingOverflow(by: unit).overflow
        else { return nil }
        return number * unit
    }

    private static func trimmed(_ text: Substring) -> Substring {
        func isBlank(_ character: Character) -> Bool { character == " " || character == "\t" || character == "\r" }
        var text = text.drop(while: isBlank)
        while let last = text.last, isBlank(last) { text.removeLast() }
        return text
    }
}
