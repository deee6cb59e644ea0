// SPDX-License-Identifier: Apache-2.0

/// The target of a state change.
package enum Target: Hashable, Sendable, CustomStringConvertible {
    case process(Int32)
    /// A unique name.
    case connection(String)
    case application(String)

    /// Reads `pid:N`, `:1.N` or `app:ID`; nil if it is none of these.
    package init?(_ text: String) {
        if text.utf8.starts(with: "pid:".utf8) {
            let digits = text.utf8.dropFirst(4)
            guard !digits.isEmpty, digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
                let number = Int32(String(digits) ?? ""), number > 0
            else { return nil }
            self = .process(number)
        } else if text.utf8.starts(with: "app:".utf8) {
            let id = text.utf8.dropFirst(4)
            guard !id.isEmpty, id.count <= 255, let id = String(id) else { return nil }
            self = .application(id)
        } else if text.utf8.first == UInt8(ascii: ":"), text.utf8.count > 1, text.utf8.count <= 255 {
            self = .connection(text)
        } else {
            return nil
        }
    }

    /// The text that it is parsed from.
    package var description: String {
        switch self {
        case .process(let pid): "pid:\(pid)"
        case .connection(let name): name
        case .application(let id): "app:\(id)"
        }
    }
}
