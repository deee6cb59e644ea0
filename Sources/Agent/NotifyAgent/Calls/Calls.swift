// SPDX-License-Identifier: Apache-2.0

import Glibc
package import NotifyCoordinator
package import NotifyCore
import NotifyNames

// Turns a call into the coordinator's event, together with its caller.
extension Agent {
    package var statements: [String] {
        [AgentInterface.AddNames.member, AgentInterface.RemoveNames.member, AgentInterface.FollowDesktop.member]
    }

    package func begin(_ call: BusCall, by caller: Caller) throws(BusFault) {
        if call.member == "Ping", let launching, launching.postpones(call) { return }
        if isOver { throw .replaced }
        let isOwn = call.path == AgentInterface.path && call.interface == AgentInterface.name
        if !isOwn, try StandardInterfaces.answer(call, { properties }, on: link) { return }
        guard isOwn || call.path == AgentInterface.path && call.interface.isEmpty else {
            call.arguments.closeDescriptors()
            throw .unknownMethod(call)
        }
        try take(Request.read(call), call, by: caller)
    }

    /// Before its state changes, an observer waits until all its additions have been taken note of, or refused.
    package func additionIsRefused(from sender: String) { handle(.additionWasRefused(from: sender)) }

    private var properties: StandardInterfaces.Properties {
        let totals = coordinator.totals
        return StandardInterfaces.Properties(observers: totals.observers, parked: totals.parked)
    }

    private func take(_ request: Request, _ call: BusCall, by caller: Caller) throws(BusFault) {
        let sender = call.sender
        // A caller that wants no answer is asking nothing.
        if !call.wantsReply, request.isQuestion { return }
        if request.concernsOthers, let confinement = caller.confinement { throw BusFault(confinement) }
        switch request {
        case .register(let statement, let socket): try register(call, statement, socket)
        case .addNames(let names):
            link.gathering {
                handle(.addNames(openCalls.keep(call), from: sender, names))
                subjectsHaveChanged(of: sender, isNew: true)
            }
        case .removeNames(let names):
            handle(.removeNames(openCalls.keep(call), from: sender, names))
            subjectsHaveChanged(of: sender, isNew: false)
        case .report(let state): handle(.report(openCalls.keep(call), from: sender, state))
        case .followDesktop(let follows): handle(.followDesktop(openCalls.keep(call), from: sender, follows))
        case .setState(let target, let state, let freezes):
            let strangers =
                freezes ? processes.strangers(to: caller.user, among: coordinator.processes(of: target)) : []
            handle(.setState(openCalls.keep(call), by: caller, target, state, freezes: freezes, strangers: strangers))
        case .release(let target): handle(.release(openCalls.keep(call), by: caller, target))
        case .setForeground(let pid):
            guard let shell = sources.source(ShellSource.self) else {
                throw .accessDenied("The agent's configuration ignores the desktop.")
            }
            guard caller.mayChange(geteuid()) else {
                throw .accessDenied("Only user \(geteuid()) and root can report the focus, not user \(caller.user).")
            }
            link.reply(to: call)
            shell.hear(sender, pid)
        case .setNameState(let name, let value):
            handle(.setNameState(openCalls.keep(call), by: caller, name, value))
        case .swapNameState(let name, let old, let new):
            handle(.swapNameState(openCalls.keep(call), by: caller, name, old, new))
        case .hold(let name):
            guard coordinator.id(of: sender) != nil else {
                throw BusFault(
                    name: AgentInterface.ErrorName.notRegistered,
                    message: "This connection has not registered."
                )
            }
            link.reply(to: call, AgentInterface.Hold.Answer(events.holds.hold(name, by: sender)).arguments)
        case .letGo(let name, let number):
            events.holds.letGo(name, number, by: sender)
            link.reply(to: call)
            endDelayIfOver()
        case .getNameState(let name): answerState(of: name, call)
        case .list:
            link.reply(to: call, AgentInterface.List.Answer(coordinator.list, for: caller.user).arguments)
        case .status:
            let version = configuration.version
            var report = AgentInterface.StatusReport(
                coordinator.totals,
                coordinator.sources,
                events: events.table.entries,
                wanted: coordinator.observedNames,
                launches: launching?.entries ?? [],
                version: version,
                since: started
            )
            report.faults = configuration.faults
            if caller.confinement == nil {
                report.focus = coordinator.sources.foremost.map { AgentInterface.FocusEntry($0.process, by: $0.source) }
            }
            report.naps = coordinator.naps.text
            report.longestStep = UInt64(loop.longestStep / 1_000)
            link.reply(to: call, report.arguments)
        case .openRelay: relaying.open(for: call)
        case .setNaps(let isOn): handle(.setNaps(openCalls.keep(call), by: caller, isOn))
        case .handOver: try handOver(call, to: caller)
        }
    }

    // MARK: - Register

    func register(
        _ call: BusCall,
        _ statement: Newcomer.Statement,
        _ socket: DescriptorBox
    ) throws(BusFault) {
        if socket.value >= 0, !mayKeep(socket.value) {
            logger.debug("released a socket", metadata: ["connection": "\(call.sender)"])
            socket.close()
        }
        if let id = coordinator.id(of: call.sender), let facts = coordinator.process(of: id).flatMap(coordinator.facts)
        {
            return enter(call, statement, socket, facts)
        }
        identity.findClient(call.sender) { [self] found in
            switch found {
            case .failure(let refusal): answer(call, .failure(BusFault(refusal)))
            case .success(let client):
                let facts = processes.note(client)
                enter(call, statement, socket, facts)
                // It may have been refused.
                if coordinator.facts(of: facts.id) == nil { processes.forget(facts.id) }
            }
        }
    }

    private func enter(
        _ call: BusCall,
        _ statement: Newcomer.Statement,
        _ socket: DescriptorBox,
        _ facts: Newcomer.ProcessFacts
    ) {
        if !facts.isWatched { socket.close() }
        if call.isForRelay, let fault = relaying.fault(in: statement.subjects, of: facts.application) {
            return answer(call, .failure(fault))
        }
        let newcomer = Newcomer(
            name: call.sender,
            user: facts.id.user,
            process: facts,
            hasSocket: socket.value >= 0,
            isRelayed: call.isForRelay,
            statement: statement
        )
        sockets.offer(socket, by: call.sender)
        let isNew = coordinator.id(of: call.sender) == nil && statement.state == nil && statement.previous.isEmpty
        // A started program is informed of what the connection has not heard before the reply: the reply and the mark
        // after it are adjacent in the stream of posts.
        link.gathering {
            handle(.register(openCalls.keep(call), newcomer))
            sockets.forgetOffer(by: call.sender)
            subjectsHaveChanged(of: call.sender, isNew: isNew)
        }
    }

    /// A program that was started for a name is informed of what has been posted so far.
    private func subjectsHaveChanged(of name: String, isNew: Bool) {
        guard let launching, let id = coordinator.id(of: name), !coordinator.isRelayed(id) else { return }
        launching.observes(id, isNew: isNew)
    }

    /// Anything other than a connection to this bus might be fed forever, or block. A connection whose socket is not
    /// kept is watched by the bus, and not parked.
    private func mayKeep(_ socket: Int32) -> Bool {
        guard let other = SocketIdentity(socket), Descriptors.canSpare(socket) else { return false }
        return other == SocketIdentity(link.descriptor)
    }
}

// How calls to the relay reach the coordinator.
extension Agent {
    func handleRelayed(_ call: BusCall, _ request: Request) {
        let sender = call.sender
        do throws(BusFault) {
            if isOver { throw .replaced }
            switch request {
            case .register(let statement, let socket): try register(call, statement, socket)
            case .addNames(let names):
                if let fault = relaying.fault(in: names, of: application(of: sender)) { throw fault }
                handle(.addNames(openCalls.keep(call), from: sender, names))
            case .removeNames(let names): handle(.removeNames(openCalls.keep(call), from: sender, names))
            case .report(let state): handle(.report(openCalls.keep(call), from: sender, state))
            case .followDesktop(let follows): handle(.followDesktop(openCalls.keep(call), from: sender, follows))
            case .getNameState(let name):
                guard SystemEvent.reachesSandboxes(name) else {
                    throw .accessDenied("A program in a sandbox does not learn which program has the focus.")
                }
                answerState(of: name, call)
            case .setNameState(let name, let value):
                guard let id = coordinator.id(of: sender), let user = coordinator.user(of: sender),
                    coordinator.subjects(of: id)?.names.contains(name) == true
                else {
                    let refusal =
                        "A program in a sandbox can set the state of a name that it observes, and of no other."
                    throw BusFault(name: AgentInterface.ErrorName.notObserved, message: refusal)
                }
                handle(.setNameState(openCalls.keep(call), by: Caller(user: user), name, value))
            case .swapNameState, .setState, .release, .setForeground, .list, .status, .openRelay, .setNaps, .handOver,
                .hold, .letGo:
                throw .unknownMethod(call)
            }
        } catch {
            answer(call, .failure(error))
        }
    }

    private func application(of name: String) -> String {
        coordinator.id(of: name).flatMap(coordinator.process).flatMap(coordinator.facts)?.application ?? ""
    }

    func wasTold(_ name: String, _ reply: Event.Reply) {
        if let id = coordinator.id(of: name) { handle(.told(id, reply)) }
    }

    /// The relay has ended, so nothing is heard for these connections until they register with the next one.
    func relayHasLost(_ names: [String], isReplaced: Bool) {
        relaying.close()
        for name in names {
            if let id = coordinator.id(of: name) { handle(.connectionEnded(id)) }
        }
        if !names.isEmpty, !isReplaced, !isOver { relaying.openAgain() }
    }
}

/// A call of the agent's own interface, parsed and validated.
enum Request {
    case register(Newcomer.Statement, socket: DescriptorBox)
    case addNames(Subjects)
    case removeNames(Subjects)
    case report(LifecycleState)
    case followDesktop(Bool)
    case setState(Target, LifecycleState, freezes: Bool)
    /// For everyone if there is no target.
    case release(Target?)
    /// 0 for no process.
    case setForeground(Int32)
    case setNameState(NotifyName, UInt64)
    case swapNameState(NotifyName, UInt64, UInt64)
    /// Has sleep or shutdown wait for the caller.
    case hold(NotifyName)
    case letGo(NotifyName, UInt64)
    case getNameState(NotifyName)
    case list
    case status
    case openRelay
    case setNaps(Bool)
    case handOver

    /// Whether it does nothing but produce an answer.
    var isQuestion: Bool {
        switch self {
        case .getNameState, .list, .status: true
        default: false
        }
    }

    /// Whether it shows or changes what belongs to others than its caller. No sandbox should let its program do that.
    var concernsOthers: Bool {
        switch self {
        case .setState, .release, .setForeground, .list, .setNaps, .handOver, .hold, .letGo: true
        case .register, .addNames, .removeNames, .report, .followDesktop: false
        case .getNameState(let name): !SystemEvent.reachesSandboxes(name)
        case .setNameState, .swapNameState, .status, .openRelay: false
        }
    }

    /// Parses a call. Descriptors that do not belong there are closed.
    static func read(_ call: BusCall) throws(BusFault) -> Request {
        switch call.member {
        case AgentInterface.Register.member: return try register(message(call))
        case AgentInterface.AddNames.member:
            let message: AgentInterface.AddNames = try message(call)
            return .addNames(try Subjects(namesOnBus: message.names, prefixes: message.prefixes))
        case AgentInterface.RemoveNames.member:
            let message: AgentInterface.RemoveNames = try message(call)
            return .removeNames(try Subjects(namesOnBus: message.names, prefixes: message.prefixes))
        case AgentInterface.Report.member: return .report(try argument(of: AgentInterface.Report.self, call))
        case AgentInterface.FollowDesktop.member:
            return .followDesktop(try argument(of: AgentInterface.FollowDesktop.self, call))
        case AgentInterface.SetState.member:
            let message: AgentInterface.SetState = try message(call)
            guard let target = Target(message.target) else {
                throw .invalidArguments("A target is 'pid:N', ':1.N' or 'app:ID'.")
            }
            return .setState(target, message.state, freezes: message.freezes)
        case AgentInterface.Release.member:
            let text = try argument(of: AgentInterface.Release.self, call)
            if text.isEmpty { return .release(nil) }
            guard let target = Target(text) else {
                throw .invalidArguments("A target is 'pid:N', ':1.N', 'app:ID', or empty for everyone.")
            }
            return .release(target)
        case AgentInterface.SetForeground.member:
            let message: AgentInterface.SetForeground = try message(call)
            return .setForeground(message.process)
        case AgentInterface.SetNameState.member:
            let message: AgentInterface.SetNameState = try message(call)
            return .setNameState(try name(message.name), message.value)
        case AgentInterface.SwapNameState.member:
            let message: AgentInterface.SwapNameState = try message(call)
            return .swapNameState(try name(message.name), message.old, message.new)
        case AgentInterface.Hold.member:
            return .hold(try eventToHold(argument(of: AgentInterface.Hold.self, call)))
        case AgentInterface.LetGo.member:
            let message: AgentInterface.LetGo = try message(call)
            return .letGo(try eventToHold(message.name), message.number)
        case AgentInterface.GetNameState.member:
            return .getNameState(try name(argument(of: AgentInterface.GetNameState.self, call)))
        case AgentInterface.List.member:
            let _: AgentInterface.List = try message(call)
            return .list
        case AgentInterface.Status.member:
            let _: AgentInterface.Status = try message(call)
            return .status
        case AgentInterface.OpenRelay.member:
            let _: AgentInterface.OpenRelay = try message(call)
            return .openRelay
        case AgentInterface.HandOver.member:
            let _: AgentInterface.HandOver = try message(call)
            return .handOver
        case AgentInterface.SetNaps.member: return .setNaps(try argument(of: AgentInterface.SetNaps.self, call))
        default:
            call.arguments.closeDescriptors()
            throw .unknownMethod(call)
        }
    }

    private static func message<Message: ProtocolCall>(_ call: BusCall) throws(BusFault) -> Message {
        do throws(ArgumentError) {
            return try Message(call.arguments)
        } catch {
            throw error.fault(for: call.member)
        }
    }

    private static func argument<Message: ProtocolCall & OneArgument>(
        of _: Message.Type,
        _ call: BusCall
    ) throws(BusFault) -> Message.Value {
        let message: Message = try message(call)
        return message.value
    }

    private static func eventToHold(_ text: String) throws(BusFault) -> NotifyName {
        let name = try name(text)
        guard Holds.names.contains(name) else { throw .invalidArguments("Nothing waits for '\(name)'.") }
        return name
    }

    private static func name(_ text: String) throws(BusFault) -> NotifyName {
        do throws(NotifyBusError) {
            return try NotifyName(text)
        } catch {
            throw .refused(error)
        }
    }

    // MARK: - Register

    /// The longest program name that is kept, in bytes.
    private static let maximumProgramLength = 255

    /// How many other unique names of a connection are considered.
    private static let maximumEarlierNames = 16

    private static func register(_ message: AgentInterface.Register) throws(BusFault) -> Request {
        let socket = DescriptorBox(message.socket ?? -1)
        var statement = Newcomer.Statement(try Subjects(namesOnBus: message.names, prefixes: message.prefixes))
        // Without a previous name it is in the foreground only because that is the default.
        statement.state = message.state == .foreground && message.previous.isEmpty ? nil : message.state
        statement.previous = message.previous
        statement.earlier = Array(message.earlier.prefix(maximumEarlierNames))
        statement.decider = message.decider
        statement.reported = message.reported
        statement.followsDesktop = message.followsDesktop
        statement.program = shortened(message.program)
        for entry in message.states.prefix(Subjects.maximumNames) {
            guard let name = try? NotifyName(entry.name) else { continue }
            statement.states.append((name, NameStateTable.Entry(value: entry.number, stamp: entry.stamp)))
        }
        return .register(statement, socket: socket)
    }

    /// Without control characters for a terminal, and truncated.
    static func shortened(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars where scalar.value >= 0x20 && !(0x7f..<0xa0).contains(scalar.value) {
            guard result.utf8.count + UTF8.width(scalar) <= maximumProgramLength else { break }
            result.unicodeScalars.append(scalar)
        }
        return result
    }
}

/// A descriptor that is closed unless it is taken.
final class DescriptorBox {
    private(set) var value: Int32

    init(_ descriptor: Int32) { value = descriptor }

    deinit { close() }

    func take() -> Int32 {
        defer { value = -1 }
        return value
    }

    func close() {
        if value >= 0 { Glibc.close(value) }
        value = -1
    }
}
