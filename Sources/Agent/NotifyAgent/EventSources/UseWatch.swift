// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore

/// Finds out which programs are in use although they are not looked at. It works while a program wants to nap, and asks
/// only for what `nap.conf` names.
final class UseWatch {
    /// How long an answer may take, in milliseconds. Without one no program counts as in use.
    private static let timeLimit: Int64 = 1_000

    private let loop: EventLoop
    private let environment: SourceEnvironment
    private let soundLimit: Int64
    private let answer: ([NapRule.Use: Set<FocusedProcess>], _ question: UInt64) -> Void
    private var question: UseQuestion?
    private var players: SoundPlayers?
    private var inhibitors: [InhibitorWatch] = []
    private var timer: Int?
    private var isLate = false
    private var terminals: Set<Int32> = []

    /// - Parameters:
    ///   - soundLimit: how long the sound server may take to answer before the connection to it is made again, in milliseconds.
    ///   - answer: called with what is in use, for the last question.
    init(
        on loop: EventLoop,
        _ environment: SourceEnvironment,
        soundLimit: Int64 = BusLink.usualAnswerLimit,
        answer: @escaping ([NapRule.Use: Set<FocusedProcess>], _ question: UInt64) -> Void
    ) {
        (self.loop, self.environment, self.soundLimit, self.answer) = (loop, environment, soundLimit, answer)
    }

    /// - Parameter question: nil if no answer is wanted any more.
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
        // The caller is not ready for the answer yet.
        loop.soon { [weak self] in self?.report() }
    }

    private func adaptPlayers() {
        let isWanted = question?.uses.contains(.audio) == true
        if isWanted, players == nil || players?.hasEnded == true {
            players = SoundPlayers(environment.soundSocket, on: loop, limit: soundLimit) { [weak self] in
                self?.report()
            }
        } else if !isWanted {
            players = nil
        }
    }

    private func adaptInhibitors() {
        let isWanted = question?.uses.contains(.inhibitor) == true
        if isWanted, inhibitors.isEmpty {
            let changed: () -> Void = { [weak self] in self?.report() }
            inhibitors = [
                InhibitorWatch(LogindInhibitors(), on: environment.machine, changed),
                InhibitorWatch(SessionInhibitors(), on: environment.session, changed),
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
    private static let question = "GET_SINK_INPUT_INFO_LIST"

    private let changed: () -> Void
    private var stream: SocketStream?
    private var questions: PacedQuestion?
    private var buffer = StreamBuffer()
    /// nil as long as they are not known.
    private(set) var processes: Set<Int32>?

    var hasEnded: Bool { stream == nil }

    init(_ path: String?, on loop: EventLoop, limit: Int64, _ changed: @escaping () -> Void) {
        self.changed = changed
        stream = path.flatMap { path in
            SocketStream(
                path,
                on: loop,
                limit: limit,
                isSilent: { [weak self] _ in self?.fail() },
                { [weak self] bytes in self?.take(bytes) }
            )
        }
        var isGreeted = false
        questions = PacedQuestion(on: loop) { [weak self] in
            self?.ask(isGreeted ? PulseWire.listStreams : PulseWire.greeting)
            isGreeted = true
        }
        questions?.want()
    }

    private func ask(_ question: [UInt8]) {
        if stream?.ask(question, SoundPlayers.question) != true { end() }
    }

    /// Without a server no process plays.
    private func end() { (stream, questions, processes) = (nil, nil, []) }

    private func fail() {
        end()
        changed()
    }

    private func take(_ bytes: [UInt8]) {
        do throws(PulseWire.Fault) {
            if bytes.isEmpty { throw .unintelligible }
            try buffer.take(bytes) { (rest) throws(PulseWire.Fault) in
                guard let message = try PulseWire.take(from: &rest) else { return false }
                try handle(message)
                return stream != nil
            }
        } catch {
            fail()
        }
    }

    private func handle(_ message: PulseWire.Message) throws(PulseWire.Fault) {
        switch message {
        case .changed: questions?.want()
        case .reply(PulseWire.Question.streams, let answer):
            guard stream?.isAnswered(SoundPlayers.question) == true else { throw .unintelligible }
            questions?.isAnswered()
            let new = try PulseWire.players(in: answer)
            guard new != processes else { break }
            processes = new
            changed()
        case .error: throw .unintelligible
        case .reply, .other: break
        }
    }
}

/// Where programs say that the machine must not sleep, or the session not become idle.
private protocol InhibitorList {
    var service: FollowedService { get }
    func hasChanged(_ signal: BusSignal) -> Bool
    /// - Parameter completion: called with nil if it did not tell.
    func find(in service: Service, then completion: @escaping (Set<FocusedProcess>?) -> Void)
}

extension BusAnswer {
    /// None if there is no such list; nil if there may be one.
    fileprivate var entries: [BusValue]? {
        switch self {
        case .success(let values):
            values.closeDescriptors()
            return values.first?.elements ?? []
        case .failure(let fault): return fault.isPassing ? nil : []
        }
    }
}

/// Keeps up to date with a list of them.
private final class InhibitorWatch: ServiceClient {
    private let list: any InhibitorList
    private let bus: any ServiceBus
    private let changed: () -> Void
    private var current: Service?
    private var isAsking = false
    /// Whether it has changed since it was asked for.
    private var mustAskAgain = false
    /// nil as long as they are not known.
    private(set) var holders: Set<FocusedProcess>?

    var service: FollowedService { list.service }

    init(_ list: any InhibitorList, on bus: any ServiceBus, _ changed: @escaping () -> Void) {
        (self.list, self.bus, self.changed) = (list, bus, changed)
        bus.add(self)
    }

    func end() {
        current = nil
        bus.remove(self)
    }

    func serviceHasCome(_ service: Service) {
        (current, isAsking) = (service, false)
        ask()
    }

    func serviceIsAway(_ reason: String) {
        (current, holders) = (nil, [])
        changed()
    }

    func handle(_ signal: BusSignal) { if list.hasChanged(signal) { ask() } }

    func ask() {
        guard let current else { return }
        mustAskAgain = isAsking
        if isAsking { return }
        isAsking = true
        list.find(in: current) { [weak self] holders in
            guard let self else { return }
            isAsking = false
            guard let holders else { return current.comeAgain() }
            self.holders = holders
            changed()
            if mustAskAgain { ask() }
        }
    }
}

/// logind's inhibitors. See org.freedesktop.login1(5).
private struct LogindInhibitors: InhibitorList {
    let service = FollowedService(
        name: "org.freedesktop.login1",
        title: "logind",
        // It has no signal for each of them, but one when what all of them prevent has changed.
        signals: [
            "interface='\(PropertyChange.interface)',member='PropertiesChanged',path='\(LogindSource.path)',"
                + "arg0='\(LogindSource.manager)'"
        ]
    )

    func hasChanged(_ signal: BusSignal) -> Bool { PropertyChange(signal)?.values["BlockInhibited"] != nil }

    func find(in service: Service, then completion: @escaping (Set<FocusedProcess>?) -> Void) {
        service.call("ListInhibitors", of: LogindSource.manager, at: LogindSource.path) { answer in
            guard let entries = answer.entries else { return completion(nil) }
            var holders: Set<FocusedProcess> = []
            for entry in entries.prefix(4_096) {
                // What, who, why, mode, user and process.
                guard case .structure(let fields) = entry, fields.count == 6, fields[3].string == "block",
                    let what = fields[0].string, let process = fields[5].uint32.flatMap({ Int32(exactly: $0) }),
                    what.split(separator: ":").contains(where: { $0 == "idle" || $0 == "sleep" })
                else { continue }
                holders.insert(FocusedProcess(pid: process))
            }
            completion(holders)
        }
    }
}

/// Those of the session's own manager, with which GNOME's and MATE's portal register what programs in sandboxes ask for.
private struct SessionInhibitors: InhibitorList {
    private static let manager = "org.gnome.SessionManager"
    private static let path = "/org/gnome/SessionManager"
    private static let inhibitor = "org.gnome.SessionManager.Inhibitor"
    private static let maximum = 256

    let service = FollowedService(
        name: manager,
        title: "the session manager",
        signals: ["interface='\(manager)',path='\(path)'"]
    )

    func hasChanged(_ signal: BusSignal) -> Bool {
        signal.member == "InhibitorAdded" || signal.member == "InhibitorRemoved"
    }

    func find(in service: Service, then completion: @escaping (Set<FocusedProcess>?) -> Void) {
        service.call("GetInhibitors", of: SessionInhibitors.manager, at: SessionInhibitors.path) { answer in
            guard let entries = answer.entries else { return completion(nil) }
            let paths = entries.prefix(SessionInhibitors.maximum).compactMap { value in
                if case .text(UInt8(ascii: "o"), let path) = value { path } else { nil }
            }
            ask(service, paths[...], [], completion)
        }
    }

    /// Asks one after another for which application it is.
    private func ask(
        _ service: Service,
        _ rest: ArraySlice<String>,
        _ found: Set<FocusedProcess>,
        _ completion: @escaping (Set<FocusedProcess>?) -> Void
    ) {
        guard let path = rest.first else { return completion(found) }
        service.call("GetAppId", of: SessionInhibitors.inhibitor, at: path) { answer in
            var found = found
            let values = (try? answer.get()) ?? []
            values.closeDescriptors()
            if let id = values.first?.string, !id.isEmpty {
                found.insert(FocusedProcess(pid: 0, application: NapRule.stem(id), user: geteuid()))
            }
            ask(service, rest.dropFirst(), found, completion)
        }
    }
}
