// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
package import NotifyCore

/// Where calls come in: in which order they are handled, and which are refused before anything is done for them.
final class Intake {
    enum Item {
        case call(BusCall)
        /// Something that must not overtake the calls of a connection.
        case work(() -> Void)
    }

    /// Gives a call's share of its owner's quota back when nobody can answer the call any more.
    ///
    /// `@unchecked Sendable`: a call may be handed to other threads, but those of the agent never leave its thread.
    private final class Keeper: @unchecked Sendable {
        private let intake: Intake
        private let charge: CallCharge

        init(_ intake: Intake, _ charge: CallCharge) {
            self.intake = intake
            self.charge = charge
        }

        deinit { intake.turns.end(charge) }
    }

    /// How long calls are handled before the bus is read again, in nanoseconds. It must be short: a dbus-daemon has one
    /// queue for everybody's calls, and what is in it must be read before another user's call is found behind it.
    private static let slice: Int64 = 1_000_000

    /// Calls of observers that may come faster than the agent takes them, and that nobody repeats if they are refused.
    private static let statements = [
        AgentInterface.AddNames.member, AgentInterface.RemoveNames.member, AgentInterface.FollowDesktop.member,
    ]

    private let link: BusLink
    private var turns: CallTurns<Item>
    private var answers = UnreadAnswers()
    /// Whether the bus says what it keeps for a connection. If not, nothing is known about what is unread.
    private var isCharged = true

    init(_ link: BusLink, _ quotas: Quotas) {
        self.link = link
        turns = CallTurns(quotas)
    }

    /// Whether no call waits for its turn.
    var isEmpty: Bool { turns.isEmpty }

    /// The user of a connection; known as long as a call of the connection is pending.
    func user(of sender: String) -> UInt32? { turns.owner(of: sender)?.user }

    /// Why a call is refused, whatever it asks for.
    func refusal(of call: BusCall.Head, isObserver: Bool) -> Refusal? {
        let load = Intake.load(call.size, isStatement: isObserver && !call.wantsReply && Intake.isStatement(call))
        return turns.refusal(from: call.sender, load) ?? (call.wantsReply ? refusal(ofAnswersTo: call.sender) : nil)
    }

    /// Why nothing is computed for a connection, which does not read what it is sent.
    func refusal(ofAnswersTo sender: String) -> Refusal? {
        isCharged ? answers.refusal(sender, of: accountHolder(sender)) : nil
    }

    /// Whether a connection is not even sent refusals.
    func ignores(_ sender: String) -> Bool { isCharged && answers.isIgnored(sender, of: accountHolder(sender)) }

    func take(_ call: BusCall, isObserver: Bool) -> CallTurns<Item>.Verdict {
        let isStatement = isObserver && !call.wantsReply && Intake.statements.contains(call.member)
        let load = Intake.load(call.size, isStatement: isStatement)
        return turns.take(.call(call), load, from: call.sender, mayBegin: hasTime)
    }

    /// - Returns: false if there is nothing that this would overtake; then it is to be done now.
    func follow(_ sender: String, _ work: @escaping () -> Void) -> Bool {
        turns.follow(.work(work), from: sender)
    }

    func identify(_ sender: String, as owner: Owner?) -> [(call: Item, refusal: Refusal)] {
        turns.identify(sender, as: owner)
    }

    func next() -> CallTurns<Item>.Turn? { turns.next() }

    /// A call that is handled from now on, and counts until it is released.
    func begun(_ call: BusCall, _ charge: CallCharge?) -> BusCall {
        var call = call
        if let charge { call.keeper = Keeper(self, charge) }
        return call
    }

    /// Whether the bus need not be read yet.
    var hasTime: Bool {
        MonotonicTime.now.nanoseconds - link.batchStart.nanoseconds < Intake.slice
    }

    /// When the bus must be read again if calls are handled from now on.
    var endOfSlice: MonotonicTime { MonotonicTime(nanoseconds: MonotonicTime.now.nanoseconds + Intake.slice) }

    // MARK: - Answers

    /// Something has been sent in reply to a call.
    func hasReplied(to sender: String, bytes: Int) {
        guard isCharged else { return }
        answers.hasAnswered(sender, of: accountHolder(sender), bytes: bytes)
        askQuestions()
    }

    func askQuestions() {
        for name in answers.takeQuestions() {
            guard isCharged else { continue }
            let stats = "org.freedesktop.DBus.Debug.Stats"
            link.callBus("GetConnectionStats", [.string(name)], of: stats) { [self] answer in
                switch answer {
                case .success(let values):
                    let kept = values.first?.dictionary?["OutgoingBytes"]?.uint32
                    values.closeDescriptors()
                    answers.isKept(kept.map(Int.init) ?? 0, for: name)
                case .failure(let fault):
                    answers.isKept(0, for: name)
                    // dbus-broker charges messages to their recipients; a dbus-daemon may be built without statistics.
                    if !fault.saysGone { isCharged = false }
                }
            }
        }
    }

    /// Whose answers these are. Those that the bus has yet to identify have one account together.
    private func accountHolder(_ sender: String) -> Owner { turns.owner(of: sender) ?? Owner(user: .max) }

    // MARK: - Sizes

    private static func isStatement(_ call: BusCall.Head) -> Bool { statements.contains(where: call.hasMember) }

    private static func load(_ size: Int, isStatement: Bool) -> CallLoad {
        CallLoad(callOf: size, isCounted: !isStatement)
    }
}

// Owners take turns, so that nobody's calls wait for all of somebody else's.
extension Agent {
    package func refuses(_ call: BusCall.Head) -> Bool {
        guard let refusal = intake.refusal(of: call, isObserver: coordinator.id(of: call.sender) != nil) else {
            return false
        }
        noteRefusal(of: call.sender, isAddition: call.hasMember(AgentInterface.AddNames.member))
        if intake.ignores(call.sender) { intake.askQuestions() } else { link.refuse(call, BusFault(refusal)) }
        return true
    }

    package func handle(_ call: BusCall) -> Bool {
        // Only the socket that comes with a registration is used, and while the call waits there may be many.
        let mayKeep =
            !call.hasDescriptors
            || call.member == AgentInterface.Register.member && call.descriptors.allSatisfy(Descriptors.canSpare)
        let call = mayKeep ? call : call.closingDescriptors
        switch intake.take(call, isObserver: coordinator.id(of: call.sender) != nil) {
        case .begin(let charge): begin(intake.begun(call, charge))
        case .waits: break
        case .refused(let refusal): refuse(call, BusFault(refusal))
        case .unknown:
            identity.findOwner(call.sender) { [self] owner in
                for (item, refusal) in intake.identify(call.sender, as: try? owner.get()) {
                    guard case .call(let call) = item else { continue }
                    if case .failure(let fault) = owner {
                        refuse(call, fault)
                    } else {
                        refuse(call, BusFault(refusal))
                    }
                }
                while intake.hasTime, handleNext() {}
            }
        }
        return true
    }

    /// Handles calls that have waited, until the bus must be read again.
    func serve() {
        let end = intake.endOfSlice
        while handleNext(), MonotonicTime.now < end {}
    }

    /// - Returns: false if none is waiting.
    private func handleNext() -> Bool {
        guard let turn = intake.next() else { return false }
        switch turn.call {
        case .call(let call): begin(intake.begun(call, turn.charge))
        case .work(let work): work()
        }
        return true
    }

    func refuse(_ call: BusCall, _ fault: BusFault) {
        call.arguments.closeDescriptors()
        noteRefusal(of: call.sender, isAddition: call.member == AgentInterface.AddNames.member)
        if intake.ignores(call.sender) { intake.askQuestions() } else { link.refuse(call, fault) }
    }

    /// Before its state changes, an observer waits until all its additions have been taken note of, or refused.
    private func noteRefusal(of sender: String, isAddition: Bool) {
        if isAddition { handle(.additionWasRefused(from: sender)) }
    }
}

extension CallLoad {
    /// In memory a call takes up more than on the wire.
    init(callOf size: Int, isCounted: Bool = true) {
        self.init(size: 512 + 2 * size, isCounted: isCounted)
    }
}
