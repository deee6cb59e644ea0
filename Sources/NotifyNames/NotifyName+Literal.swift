// SPDX-License-Identifier: Apache-2.0

extension NotifyName: ExpressibleByStringLiteral {
    /// Creates a name from a literal.
    ///
    /// A literal that is not a valid name is a programming error and ends the program with a message when the literal
    /// is first used or, for a constant, when the constant is. For text from elsewhere use the throwing initializer.
    public init(stringLiteral text: String) {
        do throws(NotifyBusError) {
            // Not `NotifyName(text)` with a literal, which would recurse.
            try self.init(text)
        } catch {
            fatalError("“\(text)” is not a valid name. \(error)")
        }
    }
}

extension NotifyName: RawRepresentable, Codable {
    /// The name as a string.
    public var rawValue: String { string }

    /// Creates a name from a string; nil if it is not a valid one.
    public init?(rawValue: String) {
        guard let name = try? NotifyName(rawValue) else { return nil }
        self = name
    }

    /// Decodes a name from a string.
    ///
    /// - Throws: `DecodingError.dataCorrupted` if the string is not a valid name.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        do throws(NotifyBusError) {
            try self.init(text)
        } catch {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: error.description)
        }
    }

    /// Encodes the name as a string.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(string)
    }
}
