// SPDX-License-Identifier: Apache-2.0

import NotifyNames

@testable import NotifyCoordinator

/// One entry, a bus that confirms at once, and a service manager that does what it is asked to do.
struct LauncherWorld {
    var launcher = Launcher()
    var now: Int64 = 0
    var starts: [(number: UInt64, restarts: Bool)] = []
    var heard = Subjects()
    var delivered: [NotifyName] = []
    var marks: [ConnectionID] = []
    var complaints: [String] = []
    var ends = 0
    var alarm: Int64?
    /// How many entries are attached.
    var attachments = 0
    let id = LaunchID(1)

    init(withManager hasManager: Bool = true, _ change: (inout LaunchEntry) -> Void = { _ in }) {
        var entry = LaunchEntry(title: "a", action: .unit("a.service"))
        entry.subjects.names = [LauncherWorld.name]
        change(&entry)
        take(.manager(obstacle: hasManager ? nil : "there is none"))
        take(.load([entry]))
        if hasManager { take(.activity(id, false)) }
    }

    static let name: NotifyName = "com.example.a"
    static let other: NotifyName = "com.example.b"

    mutating func take(_ event: Launcher.Event) {
        var events = [event]
        while !events.isEmpty {
            for effect in launcher.handle(events.removeFirst(), at: Timestamp(nanoseconds: now)) {
                switch effect {
                case .subscribe(let id, let subjects):
                    heard.formUnion(subjects)
                    events.append(.subscribed(id, failure: nil))
                case .unsubscribe(_, let subjects): heard = heard.subtracting(subjects)
                case .start(_, let number, _, _, let restarts): starts.append((number, restarts))
                case .deliver(_, let names): delivered += names
                case .mark(let mark): marks.append(mark.connection)
                case .complain(_, _, let reason): complaints.append(reason)
                case .alarm(let time): alarm = time
                case .workHasEnded: ends += 1
                case .attach: attachments += 1
                case .detach: attachments -= 1
                }
            }
        }
    }

    /// A post reaches the agent only if the agent observes the name.
    mutating func post(_ name: NotifyName = LauncherWorld.name) {
        if heard.contains(name) { take(.heard(name, launcher.entries(for: name).map(\.0))) }
    }

    mutating func end(_ outcome: Launcher.Outcome = .done) {
        take(.ended(id, number: starts.last?.number ?? 0, outcome))
    }

    /// A oneshot service: its start ends when it does.
    mutating func runThrough() {
        take(.activity(id, true))
        take(.activity(id, false))
        end()
    }

    mutating func wait(_ nanoseconds: Int64) {
        now += nanoseconds
        while let time = alarm, time <= now {
            alarm = nil
            take(.alarm)
        }
    }

    var state: String { launcher.reports[0].state }
}

extension Launcher.Event {
    /// The latest mark of a connection.
    static func marked(_ connection: ConnectionID) -> Launcher.Event { .marked(LaunchMark(connection, number: .max)) }
}
