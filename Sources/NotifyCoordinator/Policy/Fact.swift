// SPDX-License-Identifier: Apache-2.0

/// The complete current report of a source: each fact replaces the previous one.
package enum Fact: Hashable, Sendable {
    /// The processes that have the focus; none if nobody has it. It says nothing about processes other than those that
    /// were searched `among`; nil means all processes.
    case focus([FocusedProcess], among: Set<Int32>? = nil)
    /// The login sessions of the machine, and whether it is asleep.
    case logins(Logins)
    /// A process was stopped or continued. It decides nothing: such a process is parked.
    case stillness(process: Int32, isStill: Bool)

    /// For display, on one line.
    package var text: String {
        switch self {
        case .focus([], among: nil): "nobody has the focus"
        case .focus([], _): "no observer has the focus"
        case .focus(let processes, _): processes.map(\.text).joined(separator: ", ")
        case .logins(let logins): logins.text
        case .stillness(let process, let isStill): "process \(process) \(isStill ? "was stopped" : "was continued")"
        }
    }
}

/// A process that has the focus.
package struct FocusedProcess: Hashable, Sendable {
    package let pid: Int32
    /// Its application; empty if it has none. Other processes of the same application and user share the focus.
    package let application: String
    package let user: UInt32?

    package init(pid: Int32, application: String, user: UInt32?) {
        self.pid = pid
        self.application = application
        self.user = user
    }

    /// Whether a process has the focus with this one.
    package func includes(pid: Int32, application: String, user: UInt32) -> Bool {
        pid == self.pid || !application.isEmpty && application == self.application && user == self.user
    }

    var text: String { "process \(pid)" + (application.isEmpty ? "" : " (\(application))") }
}

/// The status of a source.
package enum SourceCondition: Hashable, Sendable {
    case live
    /// Not available, for this reason.
    case off(String)
}

/// What a source has found since it was last asked: only the newest.
package struct SourceNews: Sendable {
    package var condition: SourceCondition?
    package var fact: Fact?
    /// How many facts came, including replaced ones.
    package var count: UInt64 = 0

    package init() {}
}
