// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A connection to a bus: it is opened when it is needed, and opened again when it is lost. It passes calls and signals
/// to its peer, makes calls, and passes on the answers.
///
/// If names are heard on it, a ``Receiver`` reads it. Otherwise it reads on its own.
///
/// It belongs to one thread at a time, which drives it: the leader of a center, or the event loop of the agent.
package final class BusLink {
    enum Phase { case closed, opening(Handshake), ready }

    /// What becomes of the answer to a call.
    typealias Question = (BusAnswer) -> Void

    /// What an event loop grants the connection, and how it is used.
    struct Turn {
        /// When it began.
        var start = MonotonicTime(nanoseconds: 0)
        /// Whether messages have been read that are not handled yet, because the time was up.
        var isBehind = false
        /// Whether there was something to read.
        var isBusy = false
        /// How long all turns together were spent on what was read, in nanoseconds.
        var readingTime: Int64 = 0
        /// How much had been read on this connection when the peer was told that it was much.
        var readCountNoted: UInt64 = 0
    }

    /// How long the called peer may take to answer, in milliseconds, as long as libdbus waits.
    package static let usualAnswerLimit: Int64 = 25_000

    let bus: NotifyCenter.Bus
    /// How long the called peer may take to answer, in milliseconds, unless the call says otherwise; nil means forever.
    package let answerLimit: Int64?
    /// Called for everything that is not a post. Set before the connection is opened; `end` lets go of it.
    package var peer: (any BusPeer)? {
        get { handler }
        set { handler = newValue }
    }
    /// Private, for the reason that ``BusConnection`` gives.
    private var handler: (any BusPeer)?
    /// Hears names on the connection, and owns it; nil if no names are heard.
    unowned var hearer: (any BusHearer)?
    private(set) var phase = Phase.closed
    private var retry = BackOff()
    var questions = BusCalls<Question>() { didSet { questionDeadline = questions.deadline } }
    /// When the next call ends without a reply.
    private(set) var questionDeadline: MonotonicTime?
    /// Why there is no connection.
    private(set) var lossError: NotifyBusError?
    private(set) var connection: BusConnection?
    package private(set) var uniqueName = ""
    /// The bus that the connection is or was last on. See the D-Bus specification, "Server Addresses", `guid`.
    private var busIdentity: String?
    /// Whether the last connection, if any, was to another bus: the bus was restarted.
    package private(set) var isOnAnotherBus = false
    /// The users of other connections, and pending queries.
    var users = UserDirectory()
    var turn = Turn()

    /// - Parameter answerLimit: how long the called peer may take to answer; nil means forever.
    package init(bus: NotifyCenter.Bus, answerLimit: Int64? = BusLink.usualAnswerLimit) {
        self.bus = bus
        self.answerLimit = answerLimit
    }

    /// Whether it is lost, and will be made again.
    var isReconnecting: Bool { if case .closed = phase { retry.time != nil } else { false } }

    /// Connects, unless that is under way. The peer learns what becomes of it, possibly before this returns.
    package func open() { if case .closed = phase, retry.time == nil { connect() } }

    /// What `service` is to be called for.
    var serviceRequest: PollRequest {
        switch phase {
        case .closed: PollRequest(deadline: retry.time)
        case .opening(let handshake):
            PollRequest(descriptor: handshake.descriptor, events: handshake.events, deadline: handshake.deadline)
        case .ready:
            PollRequest(
                descriptor: descriptor,
                events: connection?.events ?? 0,
                deadline: .earlier(questionDeadline, .earlier(peer?.deadline, stallDeadline))
            )
        }
    }

    /// When a bus that accepts nothing counts as lost.
    private var stallDeadline: MonotonicTime? {
        guard let since = connection?.stalledSince, let limit = peer?.stallLimit else { return nil }
        return since + limit
    }

    /// Whether the bus has accepted the connection.
    var isReady: Bool { if case .ready = phase { true } else { false } }

    /// Handles timeouts and the socket.
    func service(_ events: Int16) {
        switch phase {
        case .closed:
            if let time = retry.time, time <= .now { connect() }
        case .opening(let handshake):
            switch handshake.proceed(events) {
            case .success(let welcome): becomeReady(as: welcome.text.map { String(decoding: $0, as: UTF8.self) } ?? "")
            case .failure(let error): lose(error)
            case nil: break
            }
        case .ready:
            if events != 0 { connection?.report(events) }
            // Queued messages are written first if the bus reads again.
            if let limit = stallDeadline, limit <= .now, events & Int16(POLLOUT) == 0 {
                return lose(.timedOut("accept what was sent to it"))
            }
            endLateQuestions()
            if let deadline = peer?.deadline, deadline <= .now {
                peer?.deadlineHasPassed()
            }
        }
    }

    // MARK: - What has arrived

    /// Processes a message that is not the post of a name that is heard here.
    func handle(_ message: BusMessage) {
        switch message.kind {
        case .signal: if !message.looksLikePost { passOnSignal(message) }
        case .reply, .error: if let question = questions.end(with: message) { answer(question, with: message) }
        case .call: passOnCall(message)
        case .longCall: refuse(message)
        case .invalid: break
        case .disconnected: lose(BusConnection.lossError(bus.title))
        }
    }

    private func passOnSignal(_ message: BusMessage) {
        guard let peer, let sender = message.sender, let path = message.path,
            let interface = message.interface, let member = message.member, let arguments = message.arguments()
        else { return }
        let signal = BusSignal(
            sender: String(cString: sender),
            path: String(cString: path),
            interface: String(cString: interface),
            member: String(cString: member),
            arguments: arguments
        )
        peer.handle(signal)
    }

    private func passOnCall(_ message: BusMessage) {
        if let peer, let start = message.sender {
            let sender = String(cString: start)
            if peer.refuses(BusCall.Head(sender: sender, message: message)) { return }
            let isForLater = peer.readsLargeCallsLater && message.bytes.count > BusCall.largeSize
            guard let call = BusCall(message, from: sender, readsArguments: !isForLater) else { return refuse(message) }
            if peer.handle(call) { return }
            call.arguments.closeDescriptors()
        }
        refuse(message)
    }

    // MARK: - Connecting and disconnecting

    private func connect() {
        do throws(NotifyBusError) {
            let handshake = try Handshake(
                address: bus.resolveAddress(),
                title: bus.title,
                takesDescriptors: peer?.takesDescriptors ?? false
            )
            handshake.connection.refusesCall = { [unowned self] message in
                guard let peer, let sender = message.sender else { return false }
                return peer.refuses(BusCall.Head(sender: String(cString: sender), message: message))
            }
            connection = handshake.connection
            turn.readCountNoted = 0
            phase = .opening(handshake)
        } catch {
            lose(error)
        }
    }

    /// The bus has accepted the connection, under this name.
    private func becomeReady(as name: String) {
        uniqueName = name
        phase = .ready
        retry.reset()
        lossError = nil
        let identity = connection?.busGUID
        isOnAnotherBus = identity == nil || identity != busIdentity
        busIdentity = identity
        peer?.linkIsReady(self)
        hearer?.linkIsReady()
    }

    func lose(_ error: NotifyBusError) {
        let wasReady = isReady
        lossError = error
        hearer?.linkIsLost()
        failQuestions()
        peer?.linkIsLost(error)
        users = UserDirectory()
        let isNeeded = peer?.keepsConnection == true
        let isWanted = hearer?.linkIsGone(error, wasReady: wasReady, isNeeded: isNeeded) ?? isNeeded
        if isWanted { retry.schedule() } else { retry.reset() }
    }

    /// Closes the connection for good. All pending requests fail.
    func close() {
        lossError = .closed
        retry.reset()
        failQuestions()
        peer?.linkIsClosed()
    }

    private func failQuestions() {
        let unanswered = questions.purposes
        forgetConnection()
        for question in unanswered { question(.failure(.lost)) }
    }

    private func forgetConnection() {
        questions.removeAll()
        connection = nil
        phase = .closed
    }

    /// Closes the connection, and lets go of the peer. Pending calls are forgotten without an answer.
    package func end() {
        forgetConnection()
        retry.reset()
        peer = nil
    }
}

// A connection that an event loop drives instead of a center's threads.
extension BusLink {
    /// How long what has come is handled before others get their turn, in milliseconds.
    private static let slice: Int64 = 2

    /// How many bytes are much: a quarter of what a default system bus keeps for a connection, beyond which it leaves out
    /// signals. So whenever one has been left out, this much is yet to be read.
    private static let much: UInt64 = 32 << 20

    /// When its turn began.
    package var batchStart: MonotonicTime { turn.start }
    /// Whether there was something to read when it was this connection's turn last.
    package var isBusy: Bool { turn.isBusy }
    /// How long an event loop has spent on what was read, in nanoseconds.
    package var readingTime: Int64 { turn.readingTime }

    /// What to sleep for.
    package var pollRequest: PollRequest {
        var request = serviceRequest
        // poll(2) can't know of messages that have been read and not handled.
        if turn.isBehind { (request.events, request.deadline) = (0, MonotonicTime(nanoseconds: 0)) }
        return request
    }

    /// Reads what has come, and handles it for a while. The messages that this sends are written together at the end.
    package func proceed(_ events: Int16) {
        proceed(events) { end in
            while let message = connection?.next() {
                handle(message)
                if .now >= end { return true }
            }
            return false
        }
    }

    /// The same with another way of reading.
    ///
    /// - Parameter read: handles what has come until this time. Returns whether there may be more.
    func proceed(_ events: Int16, _ read: (MonotonicTime) -> Bool) {
        let connection = connection
        connection?.collects = true
        turn.start = .now
        turn.isBusy = turn.isBehind || events & Int16(POLLIN) != 0
        service(events)
        // From here on, so that something is read each time, whatever the peer has done just now.
        let start = MonotonicTime.now
        turn.isBehind = false
        turn.isBehind = read(start + BusLink.slice)
        turn.readingTime += MonotonicTime.now.nanoseconds - start.nanoseconds
        noteReading()
        connection?.collects = false
    }

    private func noteReading() {
        guard let count = connection?.readCount, count &- turn.readCountNoted >= BusLink.much else { return }
        turn.readCountNoted = count
        peer?.hasReadMuch()
    }
}
