// SPDX-License-Identifier: Apache-2.0

/// The settings of `bridge.conf`.
package struct Settings: Sendable {
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

    /// Only listed names cross.
    init(_ draft: Draft) throws(ConfigurationError) {
        guard let broker = draft.broker else {
            throw ConfigurationError("names no broker: add a line such as 'broker = mqtts://broker.example'")
        }
        guard let realm = draft.realm else {
            throw ConfigurationError("names no realm: add a line such as 'realm = home'")
        }
        guard !draft.exports.isEmpty || !draft.imports.isEmpty else {
            throw ConfigurationError("has neither 'export' nor 'import', so no name would cross")
        }
        guard draft.password == nil || draft.user != nil else {
            throw ConfigurationError("has a password-file but no user")
        }
        guard draft.password == nil || broker.isEncrypted || broker.isLocal else {
            throw ConfigurationError(
                "would send a password to \(broker.host) unencrypted: use mqtts://"
            )
        }
        guard (draft.tls.certificate == nil) == (draft.tls.key == nil) else {
            throw ConfigurationError("has only one of cert-file and key-file: both are needed")
        }
        let hasFiles = draft.tls.authorities != nil || draft.tls.certificate != nil
        guard broker.isEncrypted || !hasFiles else {
            throw ConfigurationError("has certificates for a broker that is not mqtts://")
        }
        self.broker = broker
        self.realm = realm
        exports = NameRules(draft.exports)
        imports = NameRules(draft.imports)
        user = draft.user
        password = draft.password
        tls = draft.tls
        catchesUp = draft.catchesUp ?? false
        keepalive = draft.keepalive ?? 60
        rate = draft.rate ?? 1_000
    }

    /// The settings read so far.
    struct Draft {
        var broker: BrokerAddress?
        var realm: String?
        var exports: [NameRule] = []
        var imports: [NameRule] = []
        var user: String?
        var password: String?
        var tls = TLSFiles()
        var catchesUp: Bool?
        var keepalive: Int32?
        var rate: Int?
    }
}

/// What is wrong with the configuration, as a sentence.
package struct ConfigurationError: Error, CustomStringConvertible, Equatable {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }
}
