// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyNames

/// The real tables of the relay, and models of what surrounds them: the relay's connection, which does with them what
/// `Relay` does; the bus; two programs behind proxies, of which the second may fall silent; and the agent, which lets
/// them observe, and changes the state of the first.
struct RelayingScene: Explorable, Hashable {
    enum Choice: Hashable {
        /// A program posts a name.
        case post(Int)
        /// The bus processes what the relay has written next.
        case bus
        /// The relay reads what the bus has passed on next.
        case relay
        /// It queues a post for the programs that are to hear it, or does what has followed posts.
        case queue
        /// The agent answers a call that the relay has handed over.
        case agent
        /// A program reads what the relay has sent it next.
        case client(Int)
        /// The agent wants the first program in another state.
        case change
        /// The first program observes another name.
        case add
        /// The first program asks for everything that has been posted.
        case synchronize
        /// The second program does nothing any more.
        case fallSilent
    }

    /// How often each of these happens at most, and the states into which the first program is put one after the other.
    struct Moves: Hashable {
        var posts = 0
        var otherPosts = 0
        var changes: [LifecycleState] = []
        var additions = 0
        var questions = 0
        var silences = 0
    }

    private enum ToBus: Hashable {
        case subscribe(Int, Subjects)
        case unsubscribe(Subjects)
        case askForPlace
        case send(Int, ToClient)
    }

    private enum ToClient: Hashable {
        case state(LifecycleState)
        /// The number of a post stands for its sender, so that each can be told from the others.
        ///
        /// - Parameter read: how many posts the relay had read.
        case posts([RelayTable.Post], read: Int)
        case added
        case synchronized
    }

    private enum ToRelay: Hashable {
        case post(Int)
        case subscribed(Int)
        case place
        case addNames(Int)
        case synchronize(Int)
        case stateIsSet(Int, LifecycleState)
        case postsAreRead(Int)
    }

    private enum ProgramCall: Hashable {
        case state(Int)
        case posts(Int)
    }

    private enum RuleWaiter: Hashable {
        case nobody
        case addition(Int)
        case change(Int, LifecycleState)
    }

    private enum Work: Hashable {
        case change(Int, LifecycleState)
        case synchronize(Int)
        case add(Int)

        var client: Int {
            switch self {
            case .change(let client, _), .synchronize(let client), .add(let client): client
            }
        }
    }

    private struct NoFault: Error, Hashable {}

    /// A program, and what it is promised.
    private struct Client: Hashable {
        var inbox: [ToClient] = []
        var state = LifecycleState.foreground
        var isSilent = false
        /// The names of which it hears every post: it was told so.
        var live: Set<Int>
        /// Its state according to the agent; nil while that changes.
        var known: LifecycleState? = .foreground
        /// While it changes: whether posts may be dropped.
        var mayDrop = false
        /// Posts, a bit for each, that must be heard, of which at least the name must be heard, and that must not be heard.
        var due: UInt64 = 0
        var cover: UInt64 = 0
        var forbidden: UInt64 = 0
        var heard: UInt64 = 0
        var last = -1
        var waitsForAddition = false
        /// What it must have heard when it is told that it has heard everything; nil if it has not asked.
        var asked: UInt64?

        mutating func forgive() { (due, cover, asked) = (0, 0, asked.map { _ in 0 }) }
    }

    private static let names: [NotifyName] = ["com.example.a", "com.example.b"]
    private static let programs = [":1.1", ":1.2"]
    private static let batchLimit = 2

    private static func subjects(_ name: Int) -> Subjects { Subjects(names: [names[name]]) }
    private static func process(_ client: Int) -> ProcessID {
        ProcessID(pid: Int32(100 + client), startTime: 1, user: 0)
    }

    // The relay.
    private var table = RelayTable()
    private var rules = RuleQueue<RuleWaiter, NoFault>()
    private var window = CallWindow<ProgramCall, LifecycleState>()
    private var asking: [Work] = []
    private var toBeAsked: [Work] = []
    private var followers: [Int: Work] = [:]
    private var lastFollower = 0
    private var waiters: [Int: [Int]] = [:]
    private var lastWaiter = 0
    private var readCount = 0
    /// How many calls to programs are unanswered.
    private var unanswered = 0

    // What surrounds it.
    private var toBus: [ToBus] = []
    private var inbox: [ToRelay] = []
    private var handedOver: [Int] = []
    private var busRules: [NotifyName: Int] = [:]
    private var clients: [Client] = []
    /// The name of each post.
    private var posts: [Int] = []
    private var left: Moves
    private(set) var failure: String?
    private(set) var notes: [String] = []
    private let isNoted: Bool
    private let mutation: Mutation?

    init(_ moves: Moves, mutation: Mutation?, isNoted: Bool) {
        left = moves
        self.isNoted = isNoted
        self.mutation = mutation
        for (number, name) in RelayingScene.programs.enumerated() {
            clients.append(Client(live: [0]))
            let process = RelayingScene.process(number)
            _ = table.enter(name, of: process, Owner(process, agentUser: 0), in: .foreground)
            hear(table.add(RelayingScene.subjects(0), to: name).heard, then: .nobody)
        }
        while let choice = choices.first(where: RelayingScene.isUnderWay) { take(choice) }
        notes = []
    }

    var copy: RelayingScene { self }

    var fingerprint: Fingerprint {
        var hasher = Hasher()
        hash(into: &hasher)
        return Fingerprint(hasher)
    }

    // MARK: - What can happen

    static func isUnderWay(_ choice: Choice) -> Bool {
        switch choice {
        case .bus, .relay, .queue, .agent, .client: true
        case .post, .change, .add, .synchronize, .fallSilent: false
        }
    }

    var choices: [Choice] {
        var all: [Choice] = []
        if !toBus.isEmpty { all.append(.bus) }
        if !inbox.isEmpty { all.append(.relay) }
        if table.hasWork { all.append(.queue) }
        if !handedOver.isEmpty { all.append(.agent) }
        for (number, client) in clients.enumerated() where !client.inbox.isEmpty && !client.isSilent {
            all.append(.client(number))
        }
        if left.posts > 0 { all.append(.post(0)) }
        if left.otherPosts > 0 { all.append(.post(1)) }
        if !left.changes.isEmpty, clients[0].known != nil { all.append(.change) }
        if left.additions > 0 { all.append(.add) }
        if left.questions > 0, clients[0].asked == nil { all.append(.synchronize) }
        if left.silences > 0 { all.append(.fallSilent) }
        return all
    }

    // MARK: - What happens

    /// Takes a step. If the bus then only has to pass something on to a program, it does so at once: the program may
    /// still read it at any time, no program sees it earlier, and no other step changes what the relay has written
    /// before or its order.
    @discardableResult
    mutating func take(_ choice: Choice) -> Int {
        note("\(choice)")
        switch choice {
        case .post(let name): post(name)
        case .bus: processRequest()
        case .relay: readMessage()
        case .queue: takeStep()
        case .agent: agentAnswers(handedOver.removeFirst())
        case .client(let number): readMessage(number)
        case .change: beginChange(left.changes.removeFirst())
        case .add:
            left.additions -= 1
            clients[0].waitsForAddition = true
            inbox.append(.addNames(0))
        case .synchronize:
            left.questions -= 1
            clients[0].asked = clients[0].known == .foreground ? clients[0].due | clients[0].cover : 0
            inbox.append(.synchronize(0))
        case .fallSilent:
            left.silences -= 1
            clients[1].isSilent = true
        }
        var steps = 1
        while case .send? = toBus.first {
            note("\(Choice.bus)")
            processRequest()
            steps += 1
        }
        checkAtRest()
        return steps
    }

    private mutating func post(_ name: Int) {
        if name == 0 { left.posts -= 1 } else { left.otherPosts -= 1 }
        let bit: UInt64 = 1 << UInt64(posts.count)
        for number in clients.indices where clients[number].live.contains(name) {
            switch clients[number].known {
            case .foreground: clients[number].due |= bit
            case .suspended: clients[number].cover |= bit
            case .background: clients[number].forbidden |= bit
            case nil: if !clients[number].mayDrop { clients[number].cover |= bit }
            }
        }
        posts.append(name)
        if busRules[RelayingScene.names[name]] != nil { inbox.append(.post(posts.count - 1)) }
    }

    private mutating func beginChange(_ state: LifecycleState) {
        let isDropping = clients[0].known == .background || state == .background
        (clients[0].known, clients[0].mayDrop) = (nil, isDropping)
        // Each may wait, and be heard with others of its name.
        clients[0].cover |= clients[0].due
        (clients[0].due, clients[0].asked) = (0, clients[0].asked.map { _ in 0 })
        if isDropping { clients[0].forgive() }
        if mutation == .relayOvertakesPosts { change(0, to: state) } else { afterPosts(.change(0, state)) }
    }

    private mutating func processRequest() {
        switch toBus.removeFirst() {
        case .subscribe(let number, let subjects):
            for name in subjects.names { busRules[name, default: 0] += 1 }
            inbox.append(.subscribed(number))
        case .unsubscribe(let subjects):
            for name in subjects.names {
                let count = busRules[name, default: 0] - 1
                busRules[name] = count > 0 ? count : nil
            }
        case .askForPlace: inbox.append(.place)
        case .send(let client, let message): clients[client].inbox.append(message)
        }
    }

    private mutating func agentAnswers(_ client: Int) { follow(client, .add(client)) }

    private mutating func add(_ client: Int) {
        let heard = table.add(RelayingScene.subjects(1), to: RelayingScene.programs[client]).heard
        hear(heard, then: .addition(client))
    }

    // MARK: - The relay, as the agent's class drives it

    private mutating func readMessage() {
        let message = inbox.removeFirst()
        note("  relay: \(message)")
        switch message {
        case .post(let number):
            readCount = number + 1
            let post = RelayTable.Post(RelayingScene.names[posts[number]], from: String(number))
            table.posted(post)
        case .subscribed(let number): for (waiter, _) in rules.settle(number) { complete(waiter) }
        case .place:
            let works = asking
            asking = []
            for work in works { follow(work.client, work) }
            if asking.isEmpty, !toBeAsked.isEmpty { askForPlace() }
        case .addNames(let client): handedOver.append(client)
        case .synchronize(let client):
            if mutation == .relayAnswersEarly {
                toBus.append(.send(client, .synchronized))
            } else {
                afterPosts(.synchronize(client))
            }
        case .stateIsSet(let client, let state):
            unanswered -= 1
            window.hasAnswered(.state(client))
            table.confirm(state, of: RelayingScene.programs[client])
            isInForce(state, client)
            pass(to: RelayingScene.programs[client])
            callPrograms()
        case .postsAreRead(let client):
            unanswered -= 1
            window.hasAnswered(.posts(client))
            endWaits(table.batchIsRead(by: RelayingScene.programs[client]))
            pass(to: RelayingScene.programs[client])
            callPrograms()
        }
    }

    private mutating func hear(_ subjects: Subjects, then waiter: RuleWaiter) {
        if mutation == .relayConfirmsFirst { complete(waiter) }
        if !subjects.isEmpty { toBus.append(.subscribe(rules.begin(), subjects)) }
        if mutation != .relayConfirmsFirst, !rules.wait(waiter, of: "") { complete(waiter) }
    }

    private mutating func release(_ subjects: Subjects) {
        if !subjects.isEmpty { toBus.append(.unsubscribe(subjects)) }
    }

    private mutating func complete(_ waiter: RuleWaiter) {
        switch waiter {
        case .nobody: break
        case .addition(let client): toBus.append(.send(client, .added))
        case .change(let client, let state): enqueue(.state(client), state, of: client)
        }
    }

    private mutating func afterPosts(_ work: Work) {
        toBeAsked.append(work)
        if asking.isEmpty { askForPlace() }
    }

    private mutating func askForPlace() {
        (asking, toBeAsked) = (toBeAsked, [])
        toBus.append(.askForPlace)
    }

    private mutating func follow(_ client: Int, _ work: Work) {
        let name = RelayingScene.programs[client]
        guard mutation != .relayOvertakesLine, table.follow(lastFollower + 1, for: name) else { return perform(work) }
        lastFollower += 1
        followers[lastFollower] = work
    }

    private mutating func takeStep() {
        switch table.next() {
        case nil: break
        case .queued(let names): for name in names.sorted() { pass(to: name) }
        case .follower(let number): if let work = followers.removeValue(forKey: number) { perform(work) }
        }
    }

    private mutating func perform(_ work: Work) {
        switch work {
        case .add(let client): add(client)
        case .change(let client, let state): change(client, to: state)
        case .synchronize(let client):
            lastWaiter += 1
            if let number = table.wait(lastWaiter, for: RelayingScene.programs[client]) {
                waiters[number, default: []].append(client)
            } else {
                toBus.append(.send(client, .synchronized))
            }
        }
    }

    private mutating func change(_ client: Int, to state: LifecycleState) {
        let name = RelayingScene.programs[client]
        let (heard, unheard) = table.prepare(state, of: name)
        release(unheard)
        endWaits(table.takeWaiters(of: name))
        hear(heard, then: .change(client, state))
    }

    private mutating func endWaits(_ numbers: [Int]) {
        for number in numbers {
            for client in waiters.removeValue(forKey: number) ?? [] { toBus.append(.send(client, .synchronized)) }
        }
    }

    private mutating func enqueue(_ call: ProgramCall, _ state: LifecycleState, of client: Int) {
        window.enqueue(call, state, of: Owner(RelayingScene.process(client), agentUser: 0))
        callPrograms()
    }

    private mutating func callPrograms() {
        while mutation != .relayWaitsForSilent || unanswered == 0, let (call, state) = window.next(now: 0) {
            switch call {
            case .state(let client): send(.state(state), to: client)
            case .posts(let client): deliver(to: client)
            }
        }
    }

    private mutating func pass(to name: String) {
        guard table.hasBatch(for: name), let client = RelayingScene.programs.firstIndex(of: name) else { return }
        enqueue(.posts(client), .foreground, of: client)
    }

    private mutating func deliver(to client: Int) {
        guard let posts = table.takeBatch(for: RelayingScene.programs[client], limit: RelayingScene.batchLimit) else {
            return window.hasAnswered(.posts(client))
        }
        send(.posts(posts, read: readCount), to: client)
    }

    private mutating func send(_ message: ToClient, to client: Int) {
        unanswered += 1
        toBus.append(.send(client, message))
    }

    // MARK: - The programs

    private mutating func readMessage(_ number: Int) {
        let message = clients[number].inbox.removeFirst()
        note("  program \(number): \(message)")
        switch message {
        case .state(let state):
            clients[number].state = state
            inbox.append(.stateIsSet(number, state))
        case .posts(let posts, let read):
            if clients[number].state != .foreground { fail("program \(number) hears in the \(clients[number].state)") }
            for post in posts { hears(post, number, read) }
            inbox.append(.postsAreRead(number))
        case .added:
            clients[number].waitsForAddition = false
            clients[number].live.insert(1)
        case .synchronized:
            guard let asked = clients[number].asked else { return fail("program \(number) is answered twice") }
            let missing = asked & (clients[number].due | clients[number].cover)
            if missing != 0 { fail("program \(number) is told that it has heard everything, without \(missing)") }
            clients[number].asked = nil
        }
    }

    private mutating func hears(_ post: RelayTable.Post, _ number: Int, _ read: Int) {
        guard let sent = Int(post.sender) else {
            // It stands for several of its name.
            for other in 0..<read where RelayingScene.names[posts[other]] == post.name {
                clients[number].due &= ~(1 << UInt64(other))
                clients[number].cover &= ~(1 << UInt64(other))
            }
            return
        }
        let bit: UInt64 = 1 << UInt64(sent)
        if clients[number].forbidden & bit != 0 { fail("program \(number) hears post \(sent), made in the background") }
        if clients[number].heard & bit != 0 { fail("program \(number) hears post \(sent) twice") }
        if sent < clients[number].last { fail("program \(number) hears post \(sent) out of order") }
        clients[number].last = sent
        clients[number].heard |= bit
        clients[number].due &= ~bit
        clients[number].cover &= ~bit
    }

    /// The agent hears that a program has confirmed its state.
    private mutating func isInForce(_ state: LifecycleState, _ number: Int) {
        clients[number].known = state
        if state == .background { clients[number].forgive() }
    }

    // MARK: - Rest

    /// Nothing is under way: each program that has not fallen silent has heard everything, and was answered.
    private mutating func checkAtRest() {
        guard failure == nil, !choices.contains(where: RelayingScene.isUnderWay) else { return }
        for (number, client) in clients.enumerated() where !client.isSilent {
            if client.known == nil { fail("the state of program \(number) has not changed") }
            if client.known != client.state { fail("program \(number) is in the \(client.state)") }
            if client.due != 0 { fail("program \(number) has not heard \(client.due)") }
            if client.state == .foreground, client.cover != 0 {
                fail("program \(number) has heard neither \(client.cover) nor their names")
            }
            if client.waitsForAddition { fail("program \(number) is not told that it observes") }
            if client.asked != nil { fail("program \(number) is not told that it has heard everything") }
        }
        for (number, name) in RelayingScene.names.enumerated() {
            let isHeard = clients.contains { $0.known != .background && $0.live.contains(number) }
            if isHeard != (busRules[name] != nil) { fail("the relay \(isHeard ? "does not hear" : "hears") \(name)") }
        }
    }

    private mutating func fail(_ text: String) { if failure == nil { failure = text } }

    private mutating func note(_ text: @autoclosure () -> String) { if isNoted { notes.append(text()) } }
}
