// SPDX-License-Identifier: Apache-2.0

/// The identity of a bridge: 128 bits, generated once.
package struct Origin: Hashable, Sendable, CustomStringConvertible {
    private let high: UInt64
    private let low: UInt64

    package init(high: UInt64, low: UInt64) {
        (self.high, self.low) = (high, low)
    }

    /// Reads 32 lowercase hexadecimal digits.
    package init?(_ digits: some Collection<UInt8>) {
        guard digits.count == 32 else { return nil }
        var words: [UInt64] = [0, 0]
        for (index, byte) in digits.enumerated() {
            let digit: UInt8
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
            default: return nil
            }
            words[index / 16] = words[index / 16] << 4 | UInt64(digit)
        }
        (high, low) = (words[0], words[1])
    }

    package var description: String {
        func padded(_ word: UInt64) -> String {
            let digits = String(word, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }
        return padded(high) + padded(low)
    }
}

/// The payload of a message, `ORIGIN:SEQ`: which bridge sent it, and an increasing number.
package struct Stamp: Hashable, Sendable, CustomStringConvertible {
    package let origin: Origin
    package let sequence: UInt64

    package init(origin: Origin, sequence: UInt64) {
        (self.origin, self.sequence) = (origin, sequence)
    }

    /// Reads a payload.
    package init?(_ payload: some Collection<UInt8>) {
        let digits = payload.dropFirst(33)
        guard payload.count <= 53, let origin = Origin(payload.prefix(32)),
            payload.dropFirst(32).first == UInt8(ascii: ":"),
            digits.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }),
            let sequence = UInt64(String(decoding: digits, as: UTF8.self))
        else { return nil }
        self.init(origin: origin, sequence: sequence)
    }

    package var description: String { "\(origin):\(sequence)" }
}
