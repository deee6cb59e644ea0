// SPDX-License-Identifier: Apache-2.0

/// Which programs nap while the user is not looking at them, and how: a section of `nap.conf`.
package struct NapRule: Hashable, Sendable {
    /// What becomes of a program that naps.
    package enum Depth: String, CaseIterable, Sendable {
        case background, suspended
        /// It is suspended, and then stopped.
        case frozen
    }

    /// What keeps a program from napping.
    package enum Use: String, CaseIterable, Sendable {
        /// It plays sound.
        case audio
        /// It keeps the machine from sleeping, or the session from becoming idle.
        case inhibitor
        /// Its window was fullscreen when it lost the focus.
        case fullscreen
        /// A program runs in the foreground of its terminal. Always counts, unless the rule names the application.
        case job

        /// Those that a person can list in `nap.conf`.
        package static let configurable: [Use] = [.audio, .inhibitor, .fullscreen]
    }

    /// How a rule has come to apply to a program.
    enum Match { case named, pattern }

    /// IDs of applications or of windows, in which `*` stands for any characters. A `*` alone stands for every
    /// application that has a unit of its own.
    package var applications: [String] = []
    /// How long a program has been without the focus before it naps, in nanoseconds.
    package var delay: Int64 = 10_000_000_000
    package var depth = Depth.background
    package var keeps: Set<Use> = []
    package var needsBattery = false

    package init() {}

    /// - Returns: nil if the rule is not about this program.
    func match(_ process: FocusedProcess) -> Match? {
        let ids = [process.application, process.window].filter { !$0.isEmpty }.map(NapRule.stem)
        var match: Match?
        for pattern in applications.map(NapRule.stem) {
            if pattern == "*" {
                if !process.application.isEmpty { match = match ?? .pattern }
            } else if pattern.utf8.contains(UInt8(ascii: "*")) {
                if ids.contains(where: { NapRule.matches($0.utf8, pattern.utf8) }) { match = match ?? .pattern }
            } else if ids.contains(pattern) {
                return .named
            }
        }
        return match
    }

    /// An application is often called by the name of its desktop file.
    package static func stem(_ id: String) -> String {
        let suffix = ".desktop"
        return id.utf8.count > suffix.utf8.count && id.hasSuffix(suffix) ? String(id.dropLast(suffix.count)) : id
    }

    /// Compares in a time that grows with the product of both lengths at most, whatever the pattern.
    static func matches(_ text: String.UTF8View, _ pattern: String.UTF8View) -> Bool {
        let (text, pattern) = (Array(text), Array(pattern))
        var (position, place) = (0, 0)
        var retry: (position: Int, place: Int)?
        while position < text.count {
            if place < pattern.count, pattern[place] == UInt8(ascii: "*") {
                place += 1
                retry = (position, place)
            } else if place < pattern.count, pattern[place] == text[position] {
                position += 1
                place += 1
            } else if let last = retry {
                // The last star stands for one more character.
                (position, place) = (last.position + 1, last.place)
                retry = (position, place)
            } else {
                return false
            }
        }
        return pattern[place...].allSatisfy { $0 == UInt8(ascii: "*") }
    }
}

/// What naps as a whole: an application of a user, or a process that belongs to none.
package struct NapProgram: Hashable, Comparable, Sendable, CustomStringConvertible {
    package let application: String
    package let user: UInt32
    /// 0 if it is an application.
    package let pid: Int32
    /// When the process started: a later one with its number has not had the focus. 0 if it is an application.
    let startTime: UInt64

    package init(application: String, _ process: ProcessID) {
        self.application = application
        user = process.user
        (pid, startTime) = application.isEmpty ? (process.pid, process.startTime) : (0, 0)
    }

    /// nil if the user of the process is unknown.
    init?(_ process: FocusedProcess) {
        guard let id = process.id else { return nil }
        self.init(application: process.application, id)
    }

    package var description: String { pid == 0 ? "app:\(application)" : "pid:\(pid)" }

    package static func < (left: NapProgram, right: NapProgram) -> Bool {
        (left.application, left.user, left.pid, left.startTime)
            < (right.application, right.user, right.pid, right.startTime)
    }
}
