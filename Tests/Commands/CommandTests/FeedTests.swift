// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyCore
import TestSupport
import Testing

@testable import notify_top

/// What `notify-top` learns from the bus and the agent.
@Suite struct FeedTests {
    /// Takes what comes until a condition is met. Returns whether it was.
    private func take(_ feed: Feed, into model: inout Model, until condition: (Model) throws -> Bool) rethrows -> Bool {
        try waitUntil {
            feed.sleep(until: Deadline(after: .milliseconds(10)), beside: [])
            feed.take(into: &model)
            return try condition(model)
        }
    }

    private func post(_ name: NotifyName, by client: RawBusClient) throws {
        try client.emitSignal(
            path: "/org/notifybus",
            interface: "org.notifybus.n.\(name)",
            member: "Posted",
            signature: "s",
            body: RawBusClient.stringBody(name.string)
        )
    }

    @Test(arguments: anyBusKind())
    func `once the bus was restarted, no poster is taken for one that had its unique name before`(
        kind: BusKind
    ) throws {
        let bus = try PrivateBus(kind)
        let feed = try Feed(.address(bus.address))
        var model = Model(order: .name, start: 0)
        func poster(of name: NotifyName) -> UInt32? { model.names[name].flatMap { model.poster(of: $0) }?.process }
        // Others take the first unique names of each bus.
        let others = try (0..<20).map { _ in try RawBusClient(address: bus.address) }
        let old = try start(productPath("notify-post"), ["--address", bus.address, "-"])
        try old.writeInput("com.example.a\n")
        try #require(
            take(feed, into: &model) { model in
                model.names["com.example.a"].flatMap { model.poster(of: $0) }?.process == UInt32(old.pid)
            }
        )
        let sender = try #require(model.names["com.example.a"]?.sender)
        #expect(others.allSatisfy { $0.uniqueName != sender })
        try bus.restart()
        var clients = [try RawBusClient(address: bus.address)]
        // Known as soon as both connections have been replaced.
        try #require(
            take(feed, into: &model) { model in
                try post("com.example.probe", by: clients[0])
                return model.names["com.example.probe"].flatMap { model.poster(of: $0) } != nil
            }
        )
        #expect(model.names["com.example.a"] != nil && model.names["com.example.a"]?.sender == nil)
        while let last = clients.last, last.uniqueName != sender, clients.count < 100 {
            clients.append(try RawBusClient(address: bus.address))
        }
        let client = try #require(clients.last)
        try #require(client.uniqueName == sender)
        try post("com.example.a", by: client)
        try #require(
            take(feed, into: &model) { model in
                guard let activity = model.names["com.example.a"], activity.count == 2 else { return false }
                return model.poster(of: activity) != nil
            }
        )
        #expect(poster(of: "com.example.a") == UInt32(getpid()))
        old.closeInput()
        _ = try old.wait()
    }

    @Test(arguments: anyBusKind())
    func `the list that is waited for is the one wanted last, and only one is asked for at a time`(
        kind: BusKind
    ) throws {
        let bus = try PrivateBus(kind)
        let (permission, answers) = (Counter(), Counter())
        let agent = try FakeAgent(on: bus) { _ in
            _ = permission.wait(for: 1)
            defer { answers.add() }
            return .reply(FakeObserver.list(answers.value == 0 ? [] : [FakeObserver()]))
        }
        let feed = try Feed(.address(bus.address))
        var model = Model(order: .name, start: 0)
        try #require(take(feed, into: &model) { _ in agent.calls.count > 0 })
        for _ in 0..<10 {
            feed.askForObservers(at: 0)
            feed.sleep(until: Deadline(after: .zero), beside: [])
        }
        permission.add()
        try #require(take(feed, into: &model) { _ in feed.hasAnswered })
        feed.take(into: &model)
        #expect(model.observers?.count == 1)
        // Answered after all that came before.
        try RawBusClient(address: bus.address).call(
            destination: FakeAgent.name,
            path: "/",
            interface: FakeAgent.name,
            member: "End"
        )
        #expect(agent.calls.elements.map(\.member) == ["List", "List", "End"])
    }
}
