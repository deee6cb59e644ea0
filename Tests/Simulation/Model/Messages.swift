// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore
import NotifyNames

/// What a program sends to the bus.
enum ToBus {
    case addMatch(Int, serial: Int)
    case removeMatch(Int)
    case watchOwner
    /// A question that the bus answers at once, such as GetId.
    case ask(serial: Int)
    case getOwner(serial: Int)
    case startAgent(serial: Int)
    case getUser(of: String, serial: Int)
    /// The serial is 0 if no answer is wanted.
    case requestName(serial: Int)
    case post(Int, name: Int, isForged: Bool)
    case send(to: String, PeerMessage)
    /// The program writes no more.
    case hangUp
}

/// What the bus sends to a program.
enum FromBus {
    /// The bus has answered, with a name if it was asked for one.
    case replied(serial: Int, String?)
    /// The bus has refused, or no connection can answer.
    case failed(serial: Int)
    case post(Int)
    case ownerChanged(String)
    case nameLost
    case peer(from: String, PeerMessage)
}

/// What programs say to each other. The numbers are serials.
enum PeerMessage {
    // Indirect, so that the others are small.
    indirect case register(Int, AgentInterface.Register)
    indirect case registered(Int, AgentInterface.Register.Answer)
    /// The serial is -1 if no answer is wanted.
    case names(Int, AgentInterface.AddNames)
    case noNames(AgentInterface.RemoveNames)
    case report(Int, LifecycleState)
    case follow(Bool)
    case setNameState(Int, name: Int, value: UInt64)
    case stamp(Int, UInt64)
    case change(Int, Target, LifecycleState, freezes: Bool)
    case release(Int, Target?)
    case done(Int)
    case refused(Int)
    case setState(Int, LifecycleState, additions: UInt32)
    case stateIsSet(Int)
    /// Names were added that the agent has yet to take note of.
    case namesAdded(Int)
    /// The serial is -1 if no answer is wanted.
    case deliver(Int, [String])
    case delivered(Int)
    case decided(String)
    case keepStates(Int, [Heritage.State])
    case mark(UInt64)

    /// The serial of a call that expects an answer.
    var serialOfCall: Int? {
        switch self {
        case .register(let serial, _), .report(let serial, _), .change(let serial, _, _, _), .release(let serial, _),
            .setState(let serial, _, _), .setNameState(let serial, _, _):
            serial
        case .deliver(let serial, _), .names(let serial, _): serial >= 0 ? serial : nil
        case .keepStates(let serial, _): serial
        default: nil
        }
    }

    /// The serial of the call that this answers.
    var serialOfAnswer: Int? {
        switch self {
        case .registered(let serial, _), .done(let serial), .refused(let serial), .stateIsSet(let serial),
            .delivered(let serial), .stamp(let serial, _), .namesAdded(let serial):
            serial
        default: nil
        }
    }

    /// The same message, encoded and decoded.
    var read: PeerMessage {
        do throws(ArgumentError) {
            switch self {
            case .register(let serial, let call): return .register(serial, try AgentInterface.Register(call.arguments))
            case .registered(let serial, let answer):
                return .registered(serial, try AgentInterface.Register.Answer(answer.arguments))
            case .names(let serial, let call): return .names(serial, try AgentInterface.AddNames(call.arguments))
            case .noNames(let call): return .noNames(try AgentInterface.RemoveNames(call.arguments))
            case .setState(let serial, let state, let additions):
                let call = ObserverInterface.SetState(state: state, additions: additions)
                let read = try ObserverInterface.SetState(call.arguments)
                return .setState(serial, read.state, additions: read.additions)
            case .deliver(let serial, let names):
                let call = ObserverInterface.Deliver(names)
                return .deliver(serial, try ObserverInterface.Deliver(call.arguments).value)
            case .decided(let decider):
                let signal = AgentInterface.Decided(decider)
                return .decided(try AgentInterface.Decided(signal.arguments).value)
            case .keepStates, .follow, .setNameState, .stamp, .report, .change, .release, .done, .refused, .stateIsSet,
                .delivered, .mark, .namesAdded:
                return self
            }
        } catch {
            return .refused(-1)
        }
    }
}

extension ToBus {
    func hash(into hasher: inout Hasher) {
        switch self {
        case .addMatch(let subject, let serial): hasher.combine(SIMD4(0, subject, serial, 0))
        case .removeMatch(let subject): hasher.combine(SIMD4(1, subject, 0, 0))
        case .watchOwner: hasher.combine(2)
        case .ask(let serial): hasher.combine(SIMD4(3, serial, 0, 0))
        case .getOwner(let serial): hasher.combine(SIMD4(4, serial, 0, 0))
        case .startAgent(let serial): hasher.combine(SIMD4(5, serial, 0, 0))
        case .getUser(let name, let serial):
            hasher.combine(SIMD4(6, serial, 0, 0))
            hasher.combine(name)
        case .requestName(let serial): hasher.combine(SIMD2(7, serial))
        case .post(let post, let name, let isForged): hasher.combine(SIMD4(8, post, name, isForged ? 1 : 0))
        case .send(let name, let message):
            hasher.combine(9)
            hasher.combine(name)
            message.hash(into: &hasher)
        case .hangUp: hasher.combine(10)
        }
    }
}

extension FromBus {
    func hash(into hasher: inout Hasher) {
        switch self {
        case .replied(let serial, let text):
            hasher.combine(SIMD2(0, serial))
            hasher.combine(text)
        case .failed(let serial): hasher.combine(SIMD2(1, serial))
        case .post(let post): hasher.combine(SIMD2(2, post))
        case .ownerChanged(let name):
            hasher.combine(3)
            hasher.combine(name)
        case .nameLost: hasher.combine(4)
        case .peer(let name, let message):
            hasher.combine(5)
            hasher.combine(name)
            message.hash(into: &hasher)
        }
    }
}

extension PeerMessage {
    func hash(into hasher: inout Hasher) {
        switch self {
        case .register(let serial, let call):
            hasher.combine(SIMD2(0, serial))
            call.hash(into: &hasher)
        case .registered(let serial, let answer):
            hasher.combine(SIMD2(1, serial))
            hasher.combine(answer.state)
            hasher.combine(answer.pending)
            hasher.combine(answer.isComplete)
        case .names(let serial, let call):
            hasher.combine(SIMD2(2, serial))
            hasher.combine(call.names)
            hasher.combine(call.prefixes)
        case .noNames(let call):
            hasher.combine(3)
            hasher.combine(call.names)
            hasher.combine(call.prefixes)
        case .report(let serial, let state):
            hasher.combine(SIMD2(4, serial))
            hasher.combine(state)
        case .follow(let follows): hasher.combine(SIMD2(5, follows ? 1 : 0))
        case .setNameState(let serial, let name, let value):
            hasher.combine(SIMD2(6, serial))
            hasher.combine(name)
            hasher.combine(value)
        case .stamp(let serial, let stamp):
            hasher.combine(SIMD2(7, serial))
            hasher.combine(stamp)
        case .change(let serial, let target, let state, let freezes):
            hasher.combine(SIMD2(8, serial))
            hasher.combine(target)
            hasher.combine(state)
            hasher.combine(freezes)
        case .release(let serial, let target):
            hasher.combine(SIMD2(9, serial))
            hasher.combine(target)
        case .done(let serial): hasher.combine(SIMD2(10, serial))
        case .refused(let serial): hasher.combine(SIMD2(11, serial))
        case .setState(let serial, let state, let additions):
            hasher.combine(SIMD2(12, serial))
            hasher.combine(state)
            hasher.combine(additions)
        case .stateIsSet(let serial): hasher.combine(SIMD2(13, serial))
        case .namesAdded(let serial): hasher.combine(SIMD2(14, serial))
        case .deliver(let serial, let names):
            hasher.combine(SIMD2(15, serial))
            hasher.combine(names)
        case .delivered(let serial): hasher.combine(SIMD2(16, serial))
        case .decided(let decider):
            hasher.combine(17)
            hasher.combine(decider)
        case .mark(let number):
            hasher.combine(18)
            hasher.combine(number)
        case .keepStates(let serial, let states):
            hasher.combine(SIMD2(19, serial))
            for state in states {
                hasher.combine(state.name)
                hasher.combine(state.entry)
            }
        }
    }
}

extension AgentInterface.Register {
    func hash(into hasher: inout Hasher) {
        hasher.combine(names)
        hasher.combine(prefixes)
        hasher.combine(state)
        hasher.combine(previous)
        hasher.combine(earlier)
        hasher.combine(decider)
        hasher.combine(followsDesktop)
        for state in states {
            hasher.combine(state.name)
            hasher.combine(state.number)
            hasher.combine(state.stamp)
        }
    }
}

/// A first-in, first-out queue.
struct Queue<Element> {
    private var elements: [Element] = []
    private var head = 0

    init() { elements.reserveCapacity(4) }

    var isEmpty: Bool { head == elements.count }
    var count: Int { elements.count - head }
    /// What has not been taken out yet.
    var waiting: ArraySlice<Element> { elements[head...] }
    var first: Element? { isEmpty ? nil : elements[head] }

    mutating func append(_ element: consuming Element) { elements.append(element) }

    mutating func popFirst() -> Element? {
        guard !isEmpty else { return nil }
        // The last one is moved; the copies that were taken out before are no longer needed.
        if count == 1 {
            let last = elements.removeLast()
            if head > 0 { removeAll() }
            return last
        }
        head += 1
        return elements[head - 1]
    }

    mutating func removeAll() {
        elements.removeAll(keepingCapacity: true)
        head = 0
    }

    /// Keeps only the first elements.
    mutating func keepFirst(_ count: Int) { elements.removeLast(self.count - Swift.min(count, self.count)) }
}

/// The questions that were asked and not answered yet, by serial. There are few at a time, so nothing is hashed.
struct Questions<Question> {
    private var open: [(serial: Int, question: Question)] = []

    subscript(serial: Int) -> Question? { open.first { $0.serial == serial }?.question }

    /// The last of those that are open; 0 if none is.
    var lastSerial: Int { open.reduce(0) { max($0, $1.serial) } }

    func forEach(_ body: (Int, Question) -> Void) { for (serial, question) in open { body(serial, question) } }

    mutating func add(_ serial: Int, _ question: consuming Question) { open.append((serial, question)) }

    mutating func take(_ serial: Int) -> Question? {
        guard let place = open.firstIndex(where: { $0.serial == serial }) else { return nil }
        return open.remove(at: place).question
    }
}

/// A random number generator whose seed is a test case.
package struct SplitMix: RandomNumberGenerator, Sendable {
    private var state: UInt64

    package init(seed: UInt64) { state = seed &* 0x9e37_79b9_7f4a_7c15 }

    package mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }

    mutating func below(_ limit: Int) -> Int { Int(truncatingIfNeeded: ((next() >> 32) &* UInt64(limit)) >> 32) }
    mutating func chance(_ one: Int) -> Bool { below(one) == 0 }
}
