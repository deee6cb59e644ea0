// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Testing

@Suite struct DurationTests {
    @Test(
        arguments: [
            ("0", 0), ("1", 1_000_000_000), ("500ms", 500_000_000), ("2s", 2_000_000_000), ("1m", 60_000_000_000),
            ("1h", 3_600_000_000_000), ("1.5s", 1_500_000_000), ("1.5m", 90_000_000_000), (".5", 500_000_000),
            ("2.", 2_000_000_000), ("0.000000001", 1), ("0.0000000019", 1), ("0.1ms", 100_000),
            ("0.9999999999s", 999_999_999),
            ("000000000000000000000000001s", 1_000_000_000), ("0.25h", 900_000_000_000),
            ("1h30m", 5_400_000_000_000), ("1d", 86_400_000_000_000), ("1d12h", 129_600_000_000_000),
            ("1m1ms", 60_001_000_000), ("1.5h.5s", 5_400_500_000_000), ("36499d", 36_499 * 86_400_000_000_000),
            ("875999h", 875_999 * 3_600_000_000_000),
        ] as [(String, Int64)]
    )
    func `a duration is numbers with units, without one seconds`(text: String, nanoseconds: Int64) throws {
        let duration = try Duration(argument: try #require(Argument(copying: text)))
        #expect(duration.inNanoseconds == nanoseconds)
        #expect(duration == .nanoseconds(nanoseconds))
    }

    @Test(arguments: [
        "", " ", "s", "ms", ".", ".s", "-1", "+1", "1 s", " 1", "1w", "1S", "1h30", "30 1h", "1h 30m", "1h-1m", "1us",
        "1sec", "1e3", "0x10", "1,5",
        "1.5.5",
        "1ms2", "inf", "nan", "\u{661}", "\u{ff11}s",
    ])
    func `anything else is no duration`(text: String) throws {
        let argument = try #require(Argument(copying: text))
        let error = try #require(throws: UsageError.self) { try Duration(argument: argument) }
        #expect(error.message.contains("is not a duration"))
    }

    @Test(arguments: [
        "876000h", "9223372036854775807", "9223372036854775808ms", "1000000000000000000000h", "36500d", "36499d25h",
        "99999999999m",
    ])
    func `more than a hundred years is refused, however it is written`(text: String) throws {
        let argument = try #require(Argument(copying: text))
        let error = try #require(throws: UsageError.self) { try Duration(argument: argument) }
        #expect(error.message.contains("longer than a hundred years"))
    }
}
