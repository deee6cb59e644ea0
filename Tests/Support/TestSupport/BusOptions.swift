// SPDX-License-Identifier: Apache-2.0

/// How a ``PrivateBus`` is configured; see dbus-daemon(1).
public struct BusOptions: Sendable {
    /// The `<limit>` elements: name and value.
    ///
    /// dbus-broker counts match rules by user, not by connection: `max_match_rules_per_connection` times
    /// `max_connections_per_user` is the limit for all connections of a user together. The latter defaults to 64, so a
    /// limit of 7 becomes one of 448.
    public var limits: [String: Int]

    /// The XML inside `<busconfig>` that says who may do what.
    public var policy: String

    /// The bus's well-known type; nil omits the element.
    public var type: String?

    /// Allows everything to everyone, including other users of this machine.
    ///
    /// dbus-daemon still rejects user ids without a name.
    public static let openPolicy = """
        <policy context="default">
          <allow user="*"/>
          <allow own="*"/>
          <allow send_destination="*"/>
          <allow receive_sender="*"/>
        </policy>
        """

    /// A session bus without limits of its own that allows everything.
    public init(limits: [String: Int] = [:], policy: String = BusOptions.openPolicy, type: String? = "session") {
        self.limits = limits
        self.policy = policy
        self.type = type
    }

    /// The configuration file.
    func configuration(listeningAt address: String) -> String {
        let limits = limits.sorted { $0.key < $1.key }.map { "<limit name=\"\($0.key)\">\($0.value)</limit>" }
        return """
            <busconfig>
            \(type.map { "<type>\($0)</type>" } ?? "")
            <listen>\(address)</listen>
            \(policy)
            \(limits.joined(separator: "\n"))
            </busconfig>

            """
    }
}
