// SPDX-License-Identifier: Apache-2.0

extension Duration {
    /// The duration that `argument` spells: `500ms`, `2s`, `1.5m`, `1h`; without a unit it is seconds.
    package init(argument: Argument) throws(UsageError) {
        var rest = argument.bytes[...]
        var whole: Int64 = 0
        var fraction: Int64 = 0
        var scale: Int64 = 1
        var digits = 0
        var isTooLong = false
        while let digit = Self.takeDigit(&rest) {
            digits += 1
            // Beyond this even seconds would not fit; the digits are still read, so that the error is the right one.
            if whole > 1_000_000_000_000 { isTooLong = true } else { whole = whole * 10 + digit }
        }
        if rest.first == UInt8(ascii: ".") {
            rest = rest.dropFirst()
            while let digit = Self.takeDigit(&rest) {
                digits += 1
                // More than nine places would be less than a nanosecond.
                if scale < 1_000_000_000 {
                    fraction = fraction * 10 + digit
                    scale *= 10
                }
            }
        }
        guard digits > 0, let unit = Self.nanoseconds(unit: rest) else {
            throw UsageError("\(argument.quoted) is no duration; write a number and ms, s, m or h, as in 500ms or 1.5s")
        }
        let (nanoseconds, overflow) = whole.multipliedReportingOverflow(by: unit)
        // A hundred years, so that adding it to the clock can't overflow.
        guard !isTooLong, !overflow, nanoseconds < 3_153_600_000_000_000_000 else {
            throw UsageError("\(argument.quoted) is longer than a hundred years")
        }
        self = .nanoseconds(nanoseconds + Self.part(fraction, of: scale, in: unit))
    }

    private static func takeDigit(_ rest: inout Slice<UnsafeRawBufferPointer>) -> Int64? {
        guard let byte = rest.first, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
        rest = rest.dropFirst()
        return Int64(byte - UInt8(ascii: "0"))
    }

    private static func nanoseconds(unit: Slice<UnsafeRawBufferPointer>) -> Int64? {
        if unit.isEmpty || unit.elementsEqual("s".utf8) { return 1_000_000_000 }
        if unit.elementsEqual("ms".utf8) { return 1_000_000 }
        if unit.elementsEqual("m".utf8) { return 60_000_000_000 }
        if unit.elementsEqual("h".utf8) { return 3_600_000_000_000 }
        return nil
    }

    /// `fraction / scale` of `unit`; the product in between may need more than 64 bits.
    private static func part(_ fraction: Int64, of scale: Int64, in unit: Int64) -> Int64 {
        let (high, low) = fraction.multipliedFullWidth(by: unit)
        return scale.dividingFullWidth((high, low)).quotient
    }

    /// The whole of it in nanoseconds.
    package var inNanoseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }
}
