// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore

/// What a connection says of itself when it registers.
struct Registration: Sendable {
    /// The longest program name that is kept, in bytes.
    static let maximumProgramLength = 255

    var subjects = Subjects()
    /// What it was in before; nil if it is new, and has no reason to be in anything but the foreground.
    var state: LifecycleState?
    var previous = ""
    /// Who decided that state, as the connection was told; empty if it does not know.
    var decider = ""
    /// Whether it wants to follow the desktop: to be in the foreground only while its program has the focus, and its
    /// session is active and not locked.
    var followsDesktop = false
    var program = ""
    var socket = DescriptorBox(-1)
    /// The states of names that it had set under an agent before this one.
    var states: [(NotifyName, NameStateTable.Entry)] = []

    /// Reads the argument of the call. Descriptors that are not understood are closed.
    init(_ arguments: [BusValue]) throws(BusFault) {
        guard arguments.count == 1, let options = arguments[0].dictionary else {
            arguments.closeDescriptors()
            throw .invalidArguments("Register takes one argument of type a{sv}.")
        }
        var rest = options
        if let descriptor = rest.removeValue(forKey: "socket") {
            guard let descriptor = descriptor.descriptor else {
                Array(rest.values).closeDescriptors()
                [descriptor].closeDescriptors()
                throw .invalidArguments("The option 'socket' has type h.")
            }
            socket = DescriptorBox(descriptor)
        }
        // None of the others has one.
        Array(rest.values).closeDescriptors()
        let names = try Registration.take("names", "as", from: &rest, \.strings) ?? []
        let prefixes = try Registration.take("prefixes", "as", from: &rest, \.strings) ?? []
        subjects = try Subjects(namesOnBus: names, prefixes: prefixes)
        previous = try Registration.take("previous", "s", from: &rest, \.string) ?? ""
        decider = try Registration.take("decider", "s", from: &rest, \.string) ?? ""
        followsDesktop = try Registration.take("followsDesktop", "b", from: &rest, \.boolean) ?? false
        program = try Registration.take("program", "s", from: &rest, \.string) ?? ""
        program = Registration.shortened(program)
        let entries = try Registration.take("states", "a(stt)", from: &rest, Registration.states) ?? []
        states = entries.prefix(Subjects.maximumNames).map { $0 }
        if let text = try Registration.take("state", "s", from: &rest, \.string), !text.isEmpty {
            guard let known = LifecycleState(rawValue: text) else { throw .invalidArguments("'\(text)' is no state.") }
            state = known == .foreground && previous.isEmpty ? nil : known
        }
    }

    /// Who decided that state as far as the connection knows.
    var believedDecider: Decider { decider.isEmpty ? .rule : Decider(name: decider) }

    private static func take<Value>(
        _ key: String,
        _ type: String,
        from options: inout [String: BusValue],
        _ read: (BusValue) -> Value?
    ) throws(BusFault) -> Value? {
        guard let value = options.removeValue(forKey: key) else { return nil }
        guard let result = read(value) else { throw .invalidArguments("The option '\(key)' has type \(type).") }
        return result
    }

    /// Reads the states; what is not a name is left out.
    private static func states(_ value: BusValue) -> [(NotifyName, NameStateTable.Entry)]? {
        guard case .array("(stt)", let elements) = value else { return nil }
        return elements.compactMap { element in
            guard case .structure(let fields) = element, fields.count == 3, let text = fields[0].string,
                let value = fields[1].uint64, let stamp = fields[2].uint64, let name = try? NotifyName(text)
            else { return nil }
            return (name, NameStateTable.Entry(value: value, stamp: stamp))
        }
    }

    /// Without what could steer a terminal, and not too long.
    private static func shortened(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars where scalar.value >= 0x20 && !(0x7f..<0xa0).contains(scalar.value) {
            guard result.utf8.count + UTF8.width(scalar) <= maximumProgramLength else { break }
            result.unicodeScalars.append(scalar)
        }
        return result
    }
}
