// SPDX-License-Identifier: Apache-2.0

import NotifyNames

extension Duration {
    /// Parses a duration: `500ms`, `2s`, `1.5m`, `1h30m`, `1d`; a plain number means seconds.
    package init(argument: Argument) throws(UsageError) {
        do throws(TextFault) {
            self = try Duration(text: argument.bytes)
        } catch .malformed {
            throw UsageError(
                "\(argument.quoted) is not a duration; use a number with ms, s, m, h or d, as in 500ms, 1.5s or 1h30m"
            )
        } catch {
            throw UsageError("\(argument.quoted) is longer than a hundred years")
        }
    }

    /// The total in nanoseconds.
    package var inNanoseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }
}
