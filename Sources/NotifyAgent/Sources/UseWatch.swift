// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore

/// Finds out which programs are in use although nobody looks at them. It works while somebody wants to nap, and asks only
/// for what `nap.conf` names.
final class UseWatch {
    /// How long whoever is asked may take, in milliseconds. Who does not answer says that nobody is in use.
    private static let timeLimit: Int64 = 1_000

    private let loop: EventLoop
    private let environment: SourceEnvironment
    private let answer: ([NapRule.Use: Set<FocusedProcess>], _ question: UInt64) -> Void
    private var question: UseQuestion?
    private var players: SoundPlayers?
    private var inhibitors: [any InhibitorSource] = []
    private var timer: Int?
    private var isLate = false
    private var terminals: Set<Int32> = []

    /// - Parameter answer: called with what is in use, for the last question.
    init(
        on loop: EventLoop,
        _ environment: SourceEnvironment,
        answer: @escaping ([NapRule.Use: Set<FocusedProcess>], _ question: UInt64) -> Void
    ) {
        (self.loop, self.environment, self.answer) = (loop, environment, answer)
    }

    /// - Parameter question: nil if nobody wants to know anything any more.
    func follow(_ question: UseQuestion?) {
        self.question = question
        loop.cancel(timer)
        (timer, isLate) = (nil, false)
        adaptPlayers()
        adaptInhibitors()
        guard let question else { return }
        terminals = Set(question.terminals.filter(ProcessTree.isTerminalWithJob))
        timer = loop.after(UseWatch.timeLimit) { [weak self] in
            self?.isLate = true
            self?.report()
        }
        for source in inhibitors { source.ask() }
        // Whoever has asked is not ready for the answer yet.
        loop.soon { [weak self] in self?.report() }
    }

    private func adaptPlayers() {
        let isWanted = question?.uses.contains(.audio) == true
        if isWanted, players == nil || players?.hasEnded == true {
            players = SoundPlayers(environment.soundSocket, on: loop) { [weak self] in self?.report() }
        } else if !isWanted {
            players = nil
        }
    }

    private func adaptInhibitors() {
        let isWanted = question?.uses.contains(.inhibitor) == true
        if isWanted, inhibitors.isEmpty {
            let changed: () -> Void = { [weak self] in self?.report() }
            inhibitors = [
                LogindInhibitors(on: environment.machine, changed), SessionInhibitors(on: environment.session, changed),
            ]
        } else if !isWanted {
            for source in inhibitors { source.end() }
            inhibitors = []
        }
    }

    private func report() {
        guard let question else { return }
        let isComplete = players?.processes != nil || !question.uses.contains(.audio)
        guard isLate || isComplete && inhibitors.allSatisfy({ $0.holders != nil }) else { return }
        loop.cancel(timer)
        (timer, isLate) = (nil, true)
        var uses: [NapRule.Use: Set<FocusedProcess>] = [:]
        if question.uses.contains(.job) { uses[.job] = Set(terminals.map { FocusedProcess(pid: $0) }) }
        if question.uses.contains(.audio) {
            // A program in a sandbox knows only the number that it has there.
            let players = players?.processes ?? []
            let sandboxed = players.isEmpty ? [] : ProcessTree.namesakes(of: players, user: geteuid())
            uses[.audio] = Set(players.union(sandboxed).map { FocusedProcess(pid: $0) })
        }
        if question.uses.contains(.inhibitor) {
            uses[.inhibitor] = inhibitors.reduce(into: []) { $0.formUnion($1.holders ?? []) }
        }
        answer(uses, question.number)
    }
}

/// The processes that play sound, by PulseAudio's protocol.
private final class SoundPlayers {
    private let changed: () -> Void
    private var stream: SocketStream?
    private var buffer: [UInt8] = []
    /// nil as long as they are not known.
    private(set) var processes: Set<Int32>?

    var hasEnded: Bool { stream == nil }

    init(_ path: String?, on loop: EventLoop, _ changed: @escaping () -> Void) {
        self.changed = changed
        stream = path.flatMap { path in
            SocketStream(path, on: loop) { [weak self] bytes in self?.take(bytes) }
        }
        if stream?.send(PulseWire.greeting) != true { end() }
    }

    /// Without a server nobody plays.
    private func end() { (stream, processes) = (nil, []) }

    private func take(_ bytes: [UInt8]) {
        buffer += bytes
        do throws(PulseWire.Fault) {
            if bytes.isEmpty { throw .unintelligible }
            var mustAsk = false
            while let message = try PulseWire.take(from: &buffer) {
                switch message {
                case .changed: mustAsk = true
                case .reply(PulseWire.Question.streams, let answer):
                    let new = try PulseWire.players(in: answer)
                    guard new != processes else { break }
                    processes = new
                    changed()
                case .error: throw .unintelligible
                case .reply, .other: break
                }
            }
            if mustAsk, stream?.send(PulseWire.listStreams) != true { throw .unintelligible }
        } catch {
            end()
            changed()
        }
    }
}

/// Where programs say that the machine must not sleep, or the session not become idle.
private protocol InhibitorSource: AnyObject {
    /// nil as long as they are not known.
    var holders: Set<FocusedProcess>? { get }
    func ask()
    func end()
}

/// logind's inhibitors. See org.freedesktop.login1(5).
private final class LogindInhibitors: InhibitorSource, ServiceClient {
    let service = FollowedService(
        name: "org.freedesktop.login1",
        title: "logind",
        // It has no signal for each of them, but one when what all of them prevent has changed.
        signals: [
            "interface='\(PropertyChange.interface)',member='PropertiesChanged',path='\(LogindSource.path)',"
                + "arg0='\(LogindSource.manager)'"
        ]
    )
    private let bus: any ServiceBus
    private let changed: () -> Void
    private var logind: Service?
    private(set) var holders: Set<FocusedProcess>?

    init(on bus: any ServiceBus, _ changed: @escaping () -> Void) {
        (self.bus, self.changed) = (bus, changed)
        bus.add(self)
    }

    func end() { bus.remove(self) }

    func serviceHasCome(_ service: Service) {
        logind = service
        ask()
    }

    func serviceIsAway(_ reason: String) {
        (logind, holders) = (nil, [])
        changed()
    }

    func handle(_ signal: BusSignal) {
        if PropertyChange(signal)?.values["BlockInhibited"] != nil { ask() }
    }

    func ask() {
        logind?.call("ListInhibitors", of: LogindSource.manager, at: LogindSource.path) { [weak self] answer in
            let values = (try? answer.get()) ?? []
            values.closeDescriptors()
            let entries = values.first?.elements ?? []
            var holders: Set<FocusedProcess> = []
            for entry in entries.prefix(4_096) {
                // What, who, why, mode, user and process.
                guard case .structure(let fields) = entry, fields.count == 6, fields[3].string == "block",
                    let what = fields[0].string, let process = fields[5].uint32.flatMap({ Int32(exactly: $0) }),
                    what.split(separator: ":").contains(where: { $0 == "idle" || $0 == "sleep" })
                else { continue }
                holders.insert(FocusedProcess(pid: process))
            }
            self?.holders = holders
            self?.changed()
        }
    }
}

/// Those of the session's own manager, with which GNOME's and MATE's portal register what programs in sandboxes ask for.
private final class SessionInhibitors: InhibitorSource, ServiceClient {
    private static let manager = "org.gnome.SessionManager"
    private static let path = "/org/gnome/SessionManager"
    private static let inhibitor = "org.gnome.SessionManager.Inhibitor"
    private static let maximum = 256

    let service = FollowedService(
        name: manager,
        title: "the session manager",
        signals: ["interface='\(manager)',path='\(path)'"]
    )
    private let bus: any ServiceBus
    private let changed: () -> Void
    private var session: Service?
    private var round = 0
    private(set) var holders: Set<FocusedProcess>?

    init(on bus: any ServiceBus, _ changed: @escaping () -> Void) {
        (self.bus, self.changed) = (bus, changed)
        bus.add(self)
    }

    func end() { bus.remove(self) }

    func serviceHasCome(_ service: Service) {
        session = service
        ask()
    }

    func serviceIsAway(_ reason: String) {
        (session, holders) = (nil, [])
        changed()
    }

    func handle(_ signal: BusSignal) {
        if signal.member == "InhibitorAdded" || signal.member == "InhibitorRemoved" { ask() }
    }

    func ask() {
        guard let session else { return }
        round += 1
        let number = round
        session.call("GetInhibitors", of: SessionInhibitors.manager, at: SessionInhibitors.path) { [weak self] answer in
            let values = (try? answer.get()) ?? []
            values.closeDescriptors()
            let paths = (values.first?.elements ?? []).prefix(SessionInhibitors.maximum).compactMap { value in
                if case .text(UInt8(ascii: "o"), let path) = value { path } else { nil }
            }
            self?.ask(paths[...], [], number)
        }
    }

    /// Asks one after another for which application it is.
    private func ask(_ rest: ArraySlice<String>, _ found: Set<FocusedProcess>, _ number: Int) {
        guard number == round, let session else { return }
        guard let path = rest.first else {
            holders = found
            return changed()
        }
        session.call("GetAppId", of: SessionInhibitors.inhibitor, at: path) { [weak self] answer in
            var found = found
            let values = (try? answer.get()) ?? []
            values.closeDescriptors()
            if let id = values.first?.string, !id.isEmpty {
                let stem = id.hasSuffix(".desktop") ? String(id.dropLast(8)) : id
                found.insert(FocusedProcess(pid: 0, application: stem, user: geteuid()))
            }
            self?.ask(rest.dropFirst(), found, number)
        }
    }
}
