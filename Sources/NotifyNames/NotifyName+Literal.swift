// SPDX-License-Identifier: Apache-2.0

extension NotifyName: ExpressibleByStringLiteral {
    /// Makes a name from a literal.
    ///
    /// A literal that is no name is a mistake in the program, which ends here and says why: when the literal is first
    /// used, and for a constant when the constant is. For text that comes from elsewhere use the initializer that throws.
    public init(stringLiteral text: String) {
        do throws(NotifyBusError) {
            // Not `NotifyName(text)` with a literal, which would come back here.
            try self.init(text)
        } catch {
            fatalError("“\(text)” is not a valid name. \(error)")
        }
    }
}

extension NotifyName: RawRepresentable, Codable {
    /// The name as a string.
    public var rawValue: String { string }

    /// Makes a name from a string; nil if it is not one.
    public init?(rawValue: String) {
        guard let name = try? NotifyName(rawValue) else { return nil }
        self = name
    }

    /// Reads a name that was written as a string.
    ///
    /// - Throws: `DecodingError.dataCorrupted` if the string is not a name.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        do throws(NotifyBusError) {
            try self.init(text)
        } catch {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: error.description)
        }
    }

    /// Writes the name as a string.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(string)
    }
}
