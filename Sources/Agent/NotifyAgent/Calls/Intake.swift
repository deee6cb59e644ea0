// SPDX-License-Identifier: Apache-2.0

package import NotifyCoordinator
package import NotifyCore

/// Where calls come in: in which order they are handled, and which are refused before anything is done for them.
package final class Intake {
    /// Gives a call's share of its owner's quota back when the call can't be answered any more.
    ///
    /// `@unchecked Sendable`: a call may be handed to other threads, but those of the agent never leave its thread.
    final class PendingCharge: @unchecked Sendable {
        private let intake: Intake
        private let charge: CallCharge

        init(_ intake: Intake, _ charge: CallCharge) {
            self.intake = intake
            self.charge = charge
        }

        deinit { intake.turns.end(charge) }
    }

    /// How long calls are handled before the bus is read again, in nanoseconds. It must be short: a bus keeps the calls
    /// of all callers to the agent in one queue, and all of it must be read before another user's call is found behind
    /// it.
    private static let slice: Int64 = 100_000
    /// How long the bus is read between two slices as long as there is something to read, in nanoseconds. A dbus-broker passes
    /// on a few hundred calls at a time, which takes less: a slice after each would take half of the time that it takes to read
    /// a flood, and all that is behind it.
    private static let reading: Int64 = 1_000_000

    /// A follower is work that must not overtake the calls of a connection.
    typealias Turns = CallTurns<BusCall, () -> Void>

    /// How long small calls go first once a large one may begin, and how long an answer of the bus is waited for before it is
    /// asked again, in milliseconds. A bus leaves out even answers to a connection for which it keeps too much.
    private static let patience: Int64 = 100
    private static let placeLimit: Int64 = 1_000

    /// What stands between a large call and its beginning.
    private enum Place {
        /// Nothing has been asked.
        case unknown
        /// The bus has been asked something, and by its answer all has been read that it had before; until then it is not
        /// asked again.
        case asked(until: MonotonicTime)
        /// It has answered. Small calls may go first until then.
        case reached(patience: MonotonicTime)
    }

    private let link: BusLink
    var turns: Turns
    private var place = Place.unknown
    /// Whether a large call has begun since memory was given back.
    private var hasBegunLarge = false
    private var reading = ReadingFirst()
    /// How long the bus had been read when calls were handled last.
    private var readingTime: Int64 = 0
    /// Refusals that are sent once the bus has been read: others' calls are among what it has yet to pass on.
    private var refusals = Fifo<(caller: String, serial: UInt32, fault: BusFault)>()
    private static let maximumRefusals = 65_536
    /// How many are sent in a slice in any case.
    private static let fewRefusals = 8

    init(_ link: BusLink, _ quotas: Quotas) {
        self.link = link
        turns = CallTurns(quotas)
    }

    /// Whether the bus need not be read yet.
    var hasTime: Bool {
        MonotonicTime.now.nanoseconds - link.batchStart.nanoseconds < Intake.slice
    }

    /// When the bus must be read again if calls are handled from now on.
    var endOfSlice: MonotonicTime { MonotonicTime(nanoseconds: MonotonicTime.now.nanoseconds + Intake.slice) }

    /// Whether calls that wait have their turn, and not what the bus has yet to pass on; then that begins.
    func beginSlice() -> Bool {
        guard turns.isEmpty && refusals.isEmpty || !readsFirst() else { return false }
        guard !link.isBusy || link.readingTime - readingTime >= Intake.reading else { return false }
        readingTime = link.readingTime
        return true
    }

    private func readsFirst() -> Bool {
        switch reading.next(isBusy: link.isBusy, now: MonotonicTime.now.nanoseconds) {
        case .serve: return false
        case .read: return true
        case .ask:
            link.callBus("GetId", []) { [weak self] _ in
                self?.reading.hasAnswered(now: MonotonicTime.now.nanoseconds)
            }
            return true
        }
    }

    /// When there is something to do for calls that wait; nil if there is nothing.
    func deadline(mayBegin: Bool) -> MonotonicTime? {
        if refusals.isEmpty, !mayBegin || turns.isEmpty { return mayBegin ? largeDeadline : nil }
        return MonotonicTime(nanoseconds: reading.end ?? 0)
    }

    // MARK: - Large calls

    private var largeDeadline: MonotonicTime? {
        guard let time = turns.largeTime else { return nil }
        return switch place {
        case .unknown: MonotonicTime(nanoseconds: time)
        case .asked(let limit): limit
        case .reached(let limit): turns.isEmpty ? MonotonicTime(nanoseconds: time) : limit
        }
    }

    /// Takes a large call, if nothing is to come before it: what has come from the bus up to now, and small calls for a
    /// while. Otherwise the caller is to ask again at `deadline`.
    func nextLarge() -> Turns.Turn? {
        guard let time = turns.largeTime, time <= MonotonicTime.now.nanoseconds else { return nil }
        switch place {
        case .reached(let patience) where turns.isEmpty || patience <= .now:
            place = .unknown
            hasBegunLarge = true
            return turns.nextLarge(now: MonotonicTime.now.nanoseconds)
        case .reached: return nil
        case .asked(let limit) where limit > .now: return nil
        case .asked, .unknown:
            place = .asked(until: .now + Intake.placeLimit)
            link.callBus("GetId", []) { [weak self] _ in self?.placeIsReached() }
            return nil
        }
    }

    /// Whether the last large call is over, so that what they have taken can be given back. It says so once.
    func largeCallsAreOver() -> Bool {
        guard hasBegunLarge, turns.largeTime == nil else { return false }
        hasBegunLarge = false
        return true
    }

    private func placeIsReached() {
        if case .asked = place { place = .reached(patience: .now + Intake.patience) }
    }

    // MARK: - Refusals

    /// Why a call is refused before its arguments are read; nil if it is not.
    func refusal(of call: BusCall.Head, _ load: CallLoad) -> BusFault? {
        turns.refusal(from: call.sender, load, wantsReply: call.wantsReply).map { BusFault($0) }
    }

    /// The same once it is its turn: meanwhile much may have been sent to its sender.
    func laterRefusal(of call: BusCall) -> BusFault? {
        call.wantsReply ? turns.refusal(ofAnswersTo: call.sender).map { BusFault($0) } : nil
    }

    /// Refuses a call at once, or when the bus has been read.
    func refuseLater(_ call: BusCall.Head, _ fault: BusFault) {
        guard call.wantsReply else { return }
        guard link.isBusy, refusals.count < Intake.maximumRefusals else { return refuse(call, fault) }
        refusals.append((call.sender, call.message.serial, fault))
    }

    /// Sends some of the refusals that have waited.
    func sendRefusals(until end: MonotonicTime) {
        var count = 0
        while count < Intake.fewRefusals || .now < end, let refusal = refusals.popFirst() {
            count += 1
            if turns.ignores(refusal.caller) {
                askQuestions()
            } else {
                link.refuse(refusal.caller, refusal.serial, refusal.fault)
            }
        }
        // Its array would stay as long as it once was.
        if count > 0, refusals.isEmpty { refusals = Fifo() }
    }

    func refuse(_ call: BusCall.Head, _ fault: BusFault) {
        if turns.ignores(call.sender) { askQuestions() } else { link.refuse(call, fault) }
    }

    func refuse(_ call: BusCall, _ fault: BusFault) {
        call.arguments.closeDescriptors()
        if turns.ignores(call.sender) { askQuestions() } else { link.refuse(call, fault) }
    }

    // MARK: - Answers

    /// Something has been sent in reply to a call.
    func hasReplied(to caller: String, bytes: Int) {
        turns.hasReplied(to: caller, bytes: bytes)
        askQuestions()
    }

    /// Asks the bus how much it still keeps for connections that may have much to read.
    private func askQuestions() {
        for name in turns.answers?.takeQuestions() ?? [] {
            let stats = "org.freedesktop.DBus.Debug.Stats"
            link.callBus("GetConnectionStats", [.string(name)], of: stats) { [self] answer in
                switch answer {
                case .success(let values):
                    let kept = values.first?.dictionary?["OutgoingBytes"]?.uint32
                    values.closeDescriptors()
                    turns.answers?.isKept(kept.map(Int.init) ?? 0, for: name)
                case .failure(let fault):
                    turns.answers?.isKept(0, for: name)
                    // dbus-broker charges messages to their recipients; a dbus-daemon may be built without statistics.
                    if !fault.saysGone { turns.answers = nil }
                }
            }
        }
    }
}

/// What handles the calls of a connection: owners take turns, so that no owner's calls wait for all those of another.
package protocol CallHandler: BusPeer {
    var receiver: Receiver { get }
    var identity: Identity { get }
    var intake: Intake { get }
    /// Whether a call may begin, if it is its turn; and whether it may as soon as it arrives.
    var mayBegin: Bool { get }
    var mayBeginAtOnce: Bool { get }
    /// Calls that may come faster than they are handled, and that their callers don't repeat if they are refused.
    var statements: [String] { get }
    /// It is a call's turn. It counts until it is released.
    func begin(_ call: BusCall, by caller: Caller) throws(BusFault)
    /// Names that a connection adds to what it observes have been refused.
    func additionIsRefused(from sender: String)
}

extension CallHandler {
    package var readsLargeCallsLater: Bool { true }

    /// A bus that accepts nothing for that long has stopped, or counts so much as under way from this connection that it no
    /// longer reads from it. Then no caller is served. A new one has a new connection, with which observers register
    /// again.
    package var stallLimit: Int64? { 10_000 }

    package func refuses(_ call: BusCall.Head) -> Bool {
        let load = load(call.size, wantsReply: call.wantsReply, call.hasMember)
        guard let refusal = intake.refusal(of: call, load) else { return false }
        if call.hasMember(AgentInterface.AddNames.member) { additionIsRefused(from: call.sender) }
        intake.refuseLater(call, refusal)
        return true
    }

    package func handle(_ call: BusCall) -> Bool {
        // Only the socket that comes with a registration is used, and while the call waits there may be many.
        let mayKeep =
            !call.hasDescriptors
            || call.member == AgentInterface.Register.member && call.descriptors.allSatisfy(Descriptors.canSpare)
        let call = mayKeep ? call : call.closingDescriptors
        let load = load(call.size, wantsReply: call.wantsReply) { call.member == $0 }
        let verdict = intake.turns.take(call, load, from: call.sender, mayBegin: mayBeginAtOnce)
        guard verdict == .unknown else {
            apply(verdict, to: call)
            return true
        }
        identity.identify(call.sender) { [self] caller in
            let calls = intake.turns.identify(call.sender, as: caller, mayBegin: mayBeginAtOnce)
            for (call, verdict) in calls { apply(verdict, to: call) }
        }
        return true
    }

    private func apply(_ verdict: Intake.Turns.Verdict, to call: BusCall) {
        switch verdict {
        case .begin(let charge): begin(call, charge)
        case .refused(let refusal): refuse(call, BusFault(refusal))
        case .waits, .unknown: break
        }
    }

    /// What a call counts as. In memory it takes up more than on the wire.
    ///
    /// - Parameter hasMember: whether it calls this method.
    private func load(_ size: Int, wantsReply: Bool, _ hasMember: (String) -> Bool) -> CallLoad {
        // Also of one that has left by now, and whose next connection is about to register.
        let isStatement = !wantsReply && statements.contains(where: hasMember)
        return CallLoad(size: 512 + 2 * size, isCounted: !isStatement)
    }

    /// Handles calls that have waited, until the bus must be read again.
    func serve() {
        guard intake.beginSlice() else { return }
        let end = intake.endOfSlice
        while mayBegin, let turn = intake.turns.next() {
            handle(turn)
            if MonotonicTime.now >= end { break }
        }
        intake.sendRefusals(until: end)
        if mayBegin, let turn = intake.nextLarge() { handle(turn) }
        if intake.largeCallsAreOver() { receiver.giveMemoryBack() }
    }

    private func handle(_ turn: Intake.Turns.Turn) {
        switch turn {
        case .follower(let work): work()
        case .call(let call, let charge):
            if let refusal = intake.laterRefusal(of: call) {
                refuse(call, refusal)
                intake.turns.end(charge)
            } else {
                begin(call, charge)
            }
        }
    }

    private func begin(_ call: BusCall, _ charge: CallCharge) {
        var call = call
        call.lifetime = Intake.PendingCharge(intake, charge)
        do throws(BusFault) {
            guard call.readArguments() else { throw .unreadable(call) }
            try begin(call, by: charge.caller)
        } catch {
            receiver.link.refuse(call, error)
        }
    }

    package func hasReplied(to caller: String, bytes: Int) {
        intake.hasReplied(to: caller, bytes: bytes)
    }

    private func refuse(_ call: BusCall, _ fault: BusFault) {
        if call.member == AgentInterface.AddNames.member { additionIsRefused(from: call.sender) }
        intake.refuse(call, fault)
    }
}

extension BusFault {
    static func unreadable(_ call: BusCall) -> BusFault {
        .invalidArguments("The arguments of \(call.member) are not valid, or too many.")
    }
}
