// SPDX-License-Identifier: Apache-2.0

import NotifyCore
import NotifyNames

/// What is posted and observed in a simulation: four names, and a prefix of two of them. By number, so that a history
/// costs microseconds.
enum Subject {
    static let nameCount = 4
    static let prefix = 4
    /// What a bus with every rule of the agent knows.
    static let everything = 5

    static let names: [NotifyName] = ["sim.a", "sim.b", "pre.c", "pre.d"].compactMap { try? NotifyName($0) }
    static let texts: [String] = ["sim.a", "sim.b", "pre.c", "pre.d", "pre."]

    static func matches(_ subject: Int, _ name: Int) -> Bool {
        subject == name || subject == everything || subject == prefix && name >= 2
    }

    static func number(of text: String) -> Int? { texts.firstIndex(of: text) }
    static func number(of name: NotifyName) -> Int? { names.firstIndex(of: name) }
}

/// A post: its place in the list is its number.
struct Post {
    let name: Int
    let poster: Int
}
