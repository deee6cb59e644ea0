// SPDX-License-Identifier: Apache-2.0

package import CommandSupport
import Glibc
import NotifyNames

/// The settings of `bridge.conf`. Only listed names cross.
package struct BridgeConfiguration: Sendable {
    package let broker: BrokerAddress
    package let realm: String
    package let exports: NameRules
    package let imports: NameRules
    package let user: String?
    package let password: String?
    package let tls: TLSFiles
    package let catchesUp: Bool
    /// In seconds; 0 for none.
    package let keepalive: Int32
    /// How many names per second are posted.
    package let rate: Int

    /// The files of `ca-file`, `cert-file` and `key-file`.
    package struct TLSFiles: Sendable {
        package var authorities: String?
        package var certificate: String?
        package var key: String?

        package init() {}
    }

    package init(_ file: ConfigurationFile) throws(ConfigurationError) {
        var given = GivenSettings()
        if let fault = file.faults({ given.set($0, to: $1) }).first { throw ConfigurationError(fault) }
        if let fault = given.fault { throw ConfigurationError("\(file.name) \(fault)") }
        guard let broker = given.broker else {
            throw ConfigurationError(
                "\(file.name) names no broker: add a line such as 'broker = mqtts://broker.example'"
            )
        }
        guard let realm = given.realm else {
            throw ConfigurationError("\(file.name) names no realm: add a line such as 'realm = home'")
        }
        self.broker = broker
        self.realm = realm
        exports = NameRules(given.exports)
        imports = NameRules(given.imports)
        user = given.user
        password = given.password
        tls = given.tls
        catchesUp = given.catchesUp ?? false
        keepalive = given.keepalive ?? 60
        rate = given.rate ?? 1_000
    }
}

/// The settings read so far.
private struct GivenSettings {
    var broker: BrokerAddress?
    var realm: String?
    var exports: [NameRule] = []
    var imports: [NameRule] = []
    var user: String?
    var password: String?
    var tls = BridgeConfiguration.TLSFiles()
    var catchesUp: Bool?
    var keepalive: Int32?
    var rate: Int?

    private static let keys = [
        "broker", "ca-file", "catch-up", "cert-file", "export", "import", "keepalive", "key-file", "password-file",
        "rate", "realm", "user",
    ]

    /// What is wrong with all settings together, as the rest of a sentence.
    var fault: String? {
        guard let broker, realm != nil else { return nil }
        if exports.isEmpty, imports.isEmpty { return "has neither 'export' nor 'import', so no name would cross" }
        if password != nil, user == nil { return "has a password-file but no user" }
        if password != nil, !broker.isEncrypted, !broker.isLocal {
            return "would send a password to \(broker.host) unencrypted: use mqtts://"
        }
        if (tls.certificate == nil) != (tls.key == nil) {
            return "has only one of cert-file and key-file: both are needed"
        }
        if !broker.isEncrypted, tls.authorities != nil || tls.certificate != nil {
            return "has certificates for a broker that is not mqtts://"
        }
        return nil
    }

    /// - Returns: what is wrong.
    mutating func set(_ key: String, to value: String) -> String? {
        guard GivenSettings.keys.contains(key) else {
            return "unknown setting '\(key)'; the settings are \(GivenSettings.keys.joined(separator: ", "))"
        }
        if value.isEmpty { return "'\(key)' has no value" }
        // It would end a C string.
        if value.utf8.contains(0) { return "'\(key)' contains a NUL" }
        switch key {
        case "export": return GivenSettings.add(value, to: &exports)
        case "import": return GivenSettings.add(value, to: &imports)
        case "broker":
            let fault = "'\(value)' is not a broker; use mqtt://HOST, mqtts://HOST or a path"
            return GivenSettings.set(&broker, BrokerAddress(value), key, fault)
        case "realm":
            let fault = "a realm consists of 1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-'"
            return GivenSettings.set(&realm, GivenSettings.isRealm(value) ? value : nil, key, fault)
        case "user": return GivenSettings.set(&user, value, key, "")
        case "password-file":
            return GivenSettings.set(&password, from: value, key) { (path) throws(TextFile.Fault) in try secret(path) }
        case "ca-file": return GivenSettings.set(&tls.authorities, from: value, key, check)
        case "cert-file": return GivenSettings.set(&tls.certificate, from: value, key, check)
        case "key-file":
            return GivenSettings.set(&tls.key, from: value, key) { (path) throws(TextFile.Fault) in
                _ = try secret(path)
                return path
            }
        case "catch-up":
            return GivenSettings.set(&catchesUp, ["yes": true, "no": false][value], key, "'catch-up' is yes or no")
        case "keepalive":
            return GivenSettings.set(
                &keepalive,
                GivenSettings.seconds(value),
                key,
                "'keepalive' is 0, or 5s to 12h, as in 60s"
            )
        default:
            let rate = Int(value).flatMap { (1...1_000_000).contains($0) ? $0 : nil }
            return GivenSettings.set(&self.rate, rate, key, "'rate' is 1 to 1000000 names a second")
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

    private static func set(
        _ setting: inout String?,
        from path: String,
        _ key: String,
        _ read: (String) throws(TextFile.Fault) -> String
    ) -> String? {
        guard path.utf8.first == UInt8(ascii: "/") else { return "'\(key)' needs an absolute path" }
        do throws(TextFile.Fault) {
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

    /// `0`, or whole seconds from 5 s to 12 h.
    private static func seconds(_ text: String) -> Int32? {
        guard let nanoseconds = try? Duration.nanoseconds(in: text.utf8), nanoseconds % 1_000_000_000 == 0 else {
            return nil
        }
        let seconds = nanoseconds / 1_000_000_000
        return seconds == 0 || 5...43_200 ~= seconds ? Int32(seconds) : nil
    }
}

/// Checks whether a file can be read.
private func check(_ path: String) throws(TextFile.Fault) -> String {
    let descriptor = try TextFile.open(path)
    defer { close(descriptor) }
    var facts = stat()
    guard fstat(descriptor, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG else {
        throw TextFile.Fault("is not a regular file")
    }
    return path
}

/// Reads a file that no other user may read, without the newline at its end.
private func secret(_ path: String) throws(TextFile.Fault) -> String {
    let descriptor = try TextFile.open(path)
    defer { close(descriptor) }
    var facts = stat()
    guard fstat(descriptor, &facts) == 0, facts.st_mode & 0o077 == 0 else {
        throw TextFile.Fault("can be read by others: chmod 600 it")
    }
    guard facts.st_uid == geteuid() || facts.st_uid == 0 else { throw TextFile.Fault("belongs to another user") }
    var text = try TextFile.text(of: descriptor)
    guard !text.utf8.contains(0) else { throw TextFile.Fault("contains a NUL") }
    while text.utf8.last == UInt8(ascii: "\n") || text.utf8.last == UInt8(ascii: "\r") { text.removeLast() }
    return text
}
