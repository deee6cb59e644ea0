// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore

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
    /// 0 for nobody.
    case setForeground(Int32)
    case setNameState(NotifyName, UInt64)
    case getNameState(NotifyName)
    case list
    case status
    case openRelay

    /// Whether it does nothing but produce an answer.
    var isQuestion: Bool {
        switch self {
        case .getNameState, .list, .status: true
        default: false
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
        case AgentInterface.Report.member:
            let message: AgentInterface.Report = try message(call)
            return .report(message.state)
        case AgentInterface.FollowDesktop.member:
            let message: AgentInterface.FollowDesktop = try message(call)
            return .followDesktop(message.follows)
        case AgentInterface.SetState.member:
            let message: AgentInterface.SetState = try message(call)
            guard let target = Target(message.target) else {
                throw .invalidArguments("A target is 'pid:N', ':1.N' or 'app:ID'.")
            }
            return .setState(target, message.state, freezes: message.freezes)
        case AgentInterface.Release.member:
            let message: AgentInterface.Release = try message(call)
            if message.target.isEmpty { return .release(nil) }
            guard let target = Target(message.target) else {
                throw .invalidArguments("A target is 'pid:N', ':1.N', 'app:ID', or empty for everyone.")
            }
            return .release(target)
        case AgentInterface.SetForeground.member:
            // Not by `message`, as it accepts more types than it declares.
            do throws(ArgumentError) {
                return .setForeground(try AgentInterface.SetForeground(call.arguments).process)
            } catch {
                throw error.fault(for: call.member)
            }
        case AgentInterface.SetNameState.member:
            let message: AgentInterface.SetNameState = try message(call)
            return .setNameState(try name(message.name), message.value)
        case AgentInterface.GetNameState.member:
            let message: AgentInterface.GetNameState = try message(call)
            return .getNameState(try name(message.name))
        case AgentInterface.List.member:
            let _: AgentInterface.List = try message(call)
            return .list
        case AgentInterface.Status.member:
            let _: AgentInterface.Status = try message(call)
            return .status
        case AgentInterface.OpenRelay.member:
            let _: AgentInterface.OpenRelay = try message(call)
            return .openRelay
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
        statement.followsDesktop = message.followsDesktop
        statement.program = shortened(message.program)
        for entry in message.states.prefix(Subjects.maximumNames) {
            guard let name = try? NotifyName(entry.name) else { continue }
            statement.states.append((name, NameStateTable.Entry(value: entry.number, stamp: entry.stamp)))
        }
        return .register(statement, socket: socket)
    }

    /// Without control characters for a terminal, and truncated.
    private static func shortened(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars where scalar.value >= 0x20 && !(0x7f..<0xa0).contains(scalar.value) {
            guard result.utf8.count + UTF8.width(scalar) <= maximumProgramLength else { break }
            result.unicodeScalars.append(scalar)
        }
        return result
    }
}

/// A descriptor that is closed unless somebody takes it.
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
