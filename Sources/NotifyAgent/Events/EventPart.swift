// SPDX-License-Identifier: Apache-2.0

import NotifyCore
import NotifyEvents
import NotifyNames

/// The part of the agent that knows which sources of events are active, and for whom.
final class EventPart {
    /// What the agent must do itself.
    enum Action {
        case set(NotifyName, UInt64?)
        case post(NotifyName, isAlias: Bool)
        /// Somebody has requested the state of a name, which is now known or never will be.
        case answer(UInt64)
        case alarm(at: Int64)
        /// Sources derived from logind's facts have been started or stopped.
        case factsAreWanted, factsAreNotWanted
    }

    private var table: EventTable
    private let makers: EventMakers
    private let loop: EventLoop
    private let machine: any ServiceBus
    private let session: any ServiceBus
    /// Is told what the sources report.
    private let deliver: (_ source: String, EventNews) -> Void
    /// The sources that work, by name.
    private var working: [String: any WorkingSource] = [:]
    /// The wanted names of sources derived from logind's facts.
    private(set) var factNames: [String: Set<NotifyName>] = [:]
    private var lastQuestion: UInt64 = 0
    /// Calls that wait for the state of a name.
    private var questions: [UInt64: (BusCall, NotifyName)] = [:]

    init(
        _ makers: EventMakers,
        on loop: EventLoop,
        machine: any ServiceBus,
        session: any ServiceBus,
        _ deliver: @escaping (_ source: String, EventNews) -> Void
    ) {
        (self.makers, self.loop, self.deliver) = (makers, loop, deliver)
        (self.machine, self.session) = (machine, session)
        table = EventTable(makers.names, aliases: makers.aliases)
    }

    var names: Set<NotifyName> { table.names }
    var entries: [EventTable.Entry] { table.entries }

    /// - Returns: what the agent must do, in order.
    func handle(_ input: EventTable.Input) -> [Action] {
        var actions: [Action] = []
        for output in table.handle(input, at: MonotonicTime.now.nanoseconds) {
            switch output {
            case .start(let source, let wanted):
                if isOfFacts(source) { factNames[source] = wanted }
                if isOfFacts(source) { actions.append(.factsAreWanted) } else { start(source, wanted) }
            case .change(let source, let wanted):
                working[source]?.want(wanted)
                if factNames[source] != nil {
                    factNames[source] = wanted
                    actions.append(.factsAreWanted)
                }
            case .stop(let source):
                stop(source)
                if factNames.removeValue(forKey: source) != nil { actions.append(.factsAreNotWanted) }
            case .set(let name, let state): actions.append(.set(name, state))
            case .post(let name, let isAlias): actions.append(.post(name, isAlias: isAlias))
            case .answer(let question): actions.append(.answer(question))
            case .alarm(let time): actions.append(.alarm(at: time))
            }
        }
        return actions
    }

    func hasPosted(_ name: NotifyName) { table.hasPosted(name, wallClock: WallClock.now) }

    // MARK: - Questions

    /// A call requests the state of a name.
    func ask(_ name: NotifyName, _ call: BusCall) -> [Action] {
        lastQuestion += 1
        questions[lastQuestion] = (call, name)
        return handle(.asked(name, lastQuestion))
    }

    func takeQuestion(_ number: UInt64) -> (call: BusCall, name: NotifyName)? {
        questions.removeValue(forKey: number)
    }

    // MARK: - Sources

    private func start(_ name: String, _ wanted: Set<NotifyName>) {
        // A source may report while the table is telling what to start.
        let reporter = EventReporter { [loop, deliver] news in loop.soon { deliver(name, news) } }
        switch makers.kind(of: name) {
        case .loop(let make): working[name] = LoopSource(make(reporter), reporter, on: loop, wanted)
        case .thread(let make):
            do throws(NotifyBusError) {
                working[name] = try ThreadSource(name, reporter, on: loop, wanted, make)
            } catch {
                reporter.report(.off(error.description))
            }
        case .services(let place, let make):
            working[name] = ServiceSource(reporter, make(reporter), on: place == .machine ? machine : session)
        case .facts, nil: reporter.report(.off("there is no such source"))
        }
    }

    private func isOfFacts(_ name: String) -> Bool { if case .facts? = makers.kind(of: name) { true } else { false } }

    private func stop(_ name: String) { working.removeValue(forKey: name)?.stop() }

    func end() { for name in Array(working.keys) { stop(name) } }
}

/// An active source, from the agent's point of view.
protocol WorkingSource {
    func want(_ names: Set<NotifyName>)
    func stop()
}

/// One that follows services.
private struct ServiceSource: WorkingSource {
    private let reporter: EventReporter
    private let clients: [any ServiceClient]
    private let bus: any ServiceBus

    init(_ reporter: EventReporter, _ clients: [any ServiceClient], on bus: any ServiceBus) {
        (self.reporter, self.clients, self.bus) = (reporter, clients, bus)
        for client in clients { bus.add(client) }
    }

    func want(_ names: Set<NotifyName>) {}

    func stop() {
        reporter.close()
        for client in clients { bus.remove(client) }
    }
}

/// One that lives on the agent's loop.
private struct LoopSource: WorkingSource {
    private let source: any EventSource
    private let driver: SourceDriver
    private let reporter: EventReporter

    init(_ source: any EventSource, _ reporter: EventReporter, on loop: EventLoop, _ wanted: Set<NotifyName>) {
        (self.source, self.reporter) = (source, reporter)
        source.want(wanted)
        driver = SourceDriver(source, on: loop) { reporter.report($0.map { .off($0) } ?? .live) }
        driver.begin()
    }

    func want(_ names: Set<NotifyName>) { source.want(names) }

    func stop() {
        reporter.close()
        driver.end()
    }
}

/// One that lives on a helper thread.
private struct ThreadSource: WorkingSource {
    private let name: String
    private let loop: EventLoop
    private let thread: EventThread
    private let port: Port<EventNews>
    private let reporter: EventReporter

    init(
        _ name: String,
        _ reporter: EventReporter,
        on loop: EventLoop,
        _ wanted: Set<NotifyName>,
        _ make: @escaping @Sendable (EventReporter) -> any EventSource
    ) throws(NotifyBusError) {
        (self.name, self.loop, self.reporter) = (name, loop, reporter)
        thread = try EventThread(name: name)
        let port = loop.port { reporter.report($0) }
        self.port = port
        thread.perform { loop in
            let reporter = EventReporter { port.send($0) }
            let source = make(reporter)
            source.want(wanted)
            let driver = SourceDriver(source, on: loop) { reporter.report($0.map { .off($0) } ?? .live) }
            loop.drivers[name] = driver
            driver.begin()
        }
    }

    func want(_ names: Set<NotifyName>) {
        thread.perform { [name] loop in (loop.drivers[name]?.source as? any EventSource)?.want(names) }
    }

    func stop() {
        reporter.close()
        loop.close(port)
        thread.stop()
    }
}
