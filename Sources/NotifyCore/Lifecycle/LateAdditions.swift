// SPDX-License-Identifier: Apache-2.0

/// Names that are added while the program is suspended, or about to be: they are confirmed once the agent has subscribed to them.
struct LateAdditions: Hashable {
    /// Whether the agent wanted to suspend the program before it had heard of everything that was added.
    var isAgentBehind = false
    /// The additions that the agent has yet to answer.
    private var unanswered: Set<Int> = []
    private var last = 0
    /// Whether some wait for a registration that will report them.
    private var awaitsRegistration = false

    var areWaiting: Bool { awaitsRegistration || !unanswered.isEmpty }

    mutating func awaitRegistration() { awaitsRegistration = true }

    /// - Returns: a number for an addition that the agent is to answer.
    mutating func ask() -> Int {
        last += 1
        unanswered.insert(last)
        return last
    }

    /// - Returns: whether it was the last of those that are waiting.
    mutating func answered(_ number: Int) -> Bool {
        unanswered.remove(number) != nil && unanswered.isEmpty && !awaitsRegistration
    }

    /// None of them waits any longer.
    mutating func confirm() { (unanswered, awaitsRegistration) = ([], false) }
}
