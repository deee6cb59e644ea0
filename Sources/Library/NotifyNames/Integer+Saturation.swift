// SPDX-License-Identifier: Apache-2.0

extension FixedWidthInteger {
    /// The sum, or the nearest number that there is: for numbers that a stranger chooses.
    package func addingSaturated(_ other: Self) -> Self {
        let (sum, isOver) = addingReportingOverflow(other)
        return isOver ? (other < 0 ? .min : .max) : sum
    }
}
