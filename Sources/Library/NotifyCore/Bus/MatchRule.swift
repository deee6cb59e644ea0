// SPDX-License-Identifier: Apache-2.0

/// The match rules that deliver posts to an observing connection. See the D-Bus specification, "Match Rules".
enum MatchRule {
    /// The rule for one name.
    static func name(_ name: NotifyName) -> String {
        rule(path: WireFormat.path(for: name), "interface='\(WireFormat.interface(for: name))'")
    }

    /// Rules that together match every name that begins with a prefix, and as few others as the bus can distinguish.
    static func prefix(_ prefix: String) -> [String] {
        let namespace = self.namespace(of: prefix).map { "arg0namespace='\($0)'" }
        let reserved = NotifyName.Scope.reservedPrefixes
        if reserved.contains(where: { prefix.utf8.starts(with: $0.utf8) }) {
            return [rule(path: WireFormat.reservedPath, namespace)]
        }
        var rules = [rule(path: WireFormat.path, namespace)]
        if reserved.contains(where: { $0.utf8.starts(with: prefix.utf8) }) {
            rules.append(rule(path: WireFormat.reservedPath, namespace))
        }
        return rules
    }

    /// Rules that match every post: the fallback when the bus allows no more rules. They must differ from those of any prefix,
    /// since the bus can't tell equal rules apart when one of them is withdrawn.
    static let everything = ["type='signal',path_namespace='\(WireFormat.path)',member='\(WireFormat.member)'"]

    /// As many rules that match nothing, and can be given up to make room for `everything`.
    static let spares = [rule(path: "/org/notifybus/spare", "interface='org.notifybus.spare'")]

    private static func rule(path: String, _ key: String?) -> String {
        "type='signal',path='\(path)',member='\(WireFormat.member)'" + (key.map { ",\($0)" } ?? "")
    }

    /// The longest run of whole dotted parts at the start of the prefix that `arg0namespace` can express.
    ///
    /// It requires the syntax of a bus name: parts of `A–Z a–z 0–9 _ -` that do not begin with a digit, 255 bytes.
    private static func namespace(of prefix: String) -> String? {
        let parts = prefix.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        var usable: [String] = []
        var length = 0
        // The last part is open-ended: `com.exa` must match `com.example`.
        for part in parts.dropLast() {
            length += part.count + 1
            guard let first = part.first, !isDigit(first), part.allSatisfy(isNamespaceByte), length <= 255,
                let text = String(part)
            else { break }
            usable.append(text)
        }
        return usable.isEmpty ? nil : usable.joined(separator: ".")
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }

    private static func isNamespaceByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "_"),
            UInt8(ascii: "-"):
            true
        default:
            isDigit(byte)
        }
    }
}
