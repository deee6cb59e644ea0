// SPDX-License-Identifier: Apache-2.0

extension Duration {
    /// Why a text is not a duration.
    package enum TextFault: Error {
        case malformed
        case tooLong
    }

    /// A hundred years, so that adding it to the clock can't overflow.
    private static let longest: Int64 = 3_153_600_000_000_000_000

    /// Parses a duration: `500ms`, `2s`, `1.5m`, `1h30m`, `1d`; a plain number means seconds.
    package init(text: some Sequence<UInt8>) throws(TextFault) {
        self = .nanoseconds(try Duration.nanoseconds(in: text))
    }

    /// The same in nanoseconds.
    package static func nanoseconds(in text: some Sequence<UInt8>) throws(TextFault) -> Int64 {
        var rest = Array(text)[...]
        var sum: Int64 = 0
        var parts = 0
        repeat {
            guard let number = Number(&rest), let unit = Self.takeUnit(&rest, isAlone: parts == 0) else {
                throw .malformed
            }
            parts += 1
            guard let nanoseconds = number.times(unit), nanoseconds < Self.longest - sum else { throw .tooLong }
            sum += nanoseconds
        } while !rest.isEmpty
        return sum
    }

    /// Digits, optionally with a fraction.
    private struct Number {
        private var whole: Int64 = 0
        private var fraction: Int64 = 0
        private var scale: Int64 = 1
        private var isTooLong = false

        /// Parses one at the beginning of `rest`; nil if there is none.
        init?(_ rest: inout ArraySlice<UInt8>) {
            var digits = 0
            while let digit = Self.takeDigit(&rest) {
                digits += 1
                // Beyond this even seconds would overflow; the digits are still read so that the error is the right
                // one.
                if whole > 1_000_000_000_000 { isTooLong = true } else { whole = whole * 10 + digit }
            }
            if rest.first == UInt8(ascii: ".") {
                rest = rest.dropFirst()
                while let digit = Self.takeDigit(&rest) {
                    digits += 1
                    // Beyond nine places a digit is less than a nanosecond.
                    if scale < 1_000_000_000 {
                        fraction = fraction * 10 + digit
                        scale *= 10
                    }
                }
            }
            if digits == 0 { return nil }
        }

        /// The product; nil if it is too large.
        func times(_ unit: Int64) -> Int64? {
            let (product, overflow) = whole.multipliedReportingOverflow(by: unit)
            if isTooLong || overflow || product >= Duration.longest { return nil }
            // The intermediate product may need more than 64 bits.
            let (high, low) = fraction.multipliedFullWidth(by: unit)
            return product + scale.dividingFullWidth((high, low)).quotient
        }

        private static func takeDigit(_ rest: inout ArraySlice<UInt8>) -> Int64? {
            guard let byte = rest.first, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
            rest = rest.dropFirst()
            return Int64(byte - UInt8(ascii: "0"))
        }
    }

    /// Parses a unit at the beginning of `rest`, and returns its length in nanoseconds.
    ///
    /// - Parameter isAlone: whether the unit may be omitted at the end, which means seconds.
    private static func takeUnit(_ rest: inout ArraySlice<UInt8>, isAlone: Bool) -> Int64? {
        if rest.isEmpty { return isAlone ? 1_000_000_000 : nil }
        // `ms` before `m`.
        let units: [(StaticString, Int64)] = [
            ("ms", 1_000_000), ("s", 1_000_000_000), ("m", 60_000_000_000), ("h", 3_600_000_000_000),
            ("d", 86_400_000_000_000),
        ]
        for (name, nanoseconds) in units {
            let bytes = UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
            if rest.starts(with: bytes) {
                rest = rest.dropFirst(bytes.count)
                return nanoseconds
            }
        }
        return nil
    }
}
