// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// Agents hand over what they know.
@Suite struct HandingOverTests {
    /// An observer in this process of many names and a prefix.
    private final class Listener: Sendable {
        let center: NotifyCenter
        let heard = Recorder<String>()
        private let observation: NotifyCenter.Observation
        let name: String

        init(_ agent: AgentBus, names: [NotifyName], prefix: NamePrefix? = nil) throws {
            center = agent.makeCenter()
            let subject = NotifySubject(names: names, prefixes: prefix.map { [$0] } ?? [])
            observation = try center.addObserver(matching: subject, timeout: .seconds(25)) { [heard] in
                heard.append($0.string)
            }
            name = try center.observingName()
        }

        /// Everything heard after it has heard the name of a post that is made now.
        ///
        /// - Parameter start: how much of what was heard before is left out.
        func all(_ poster: NotifyCenter, until last: NotifyName, from start: Int = 0) throws -> [String] {
            try poster.postOnceConnected(last)
            let isHeard = waitUntil(timeout: .patience) { heard.elements.dropFirst(start).contains(last.string) }
            try #require(isHeard)
            try center.barrier(timeout: .patience)
            return heard.elements.dropFirst(start).filter { $0 != last.string }
        }
    }

    /// Replaces the agent again and again.
    ///
    /// - Returns: false if it took longer than changes may take before an agent hands over without them, once. Then all is
    ///   as if that agent had died: each name may be heard once more, posted or not, and a prefix may lose posts.
    private func replace(_ agent: AgentBus, times: Int) throws -> Bool {
        var isInTime = true
        for _ in 0..<times {
            let began = ContinuousClock.now
            try agent.replaceAgent()
            if ContinuousClock.now - began > .seconds(1) { isInTime = false }
        }
        return isInTime
    }

    /// More than the agent subscribes to at once, three times.
    private static let many: [NotifyName] = (0..<800).compactMap { try? NotifyName("com.example.many.\($0)") }

    @Test(arguments: busKinds)
    func `an agent that is replaced hands over what was posted, and nothing else is heard`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let poster = agent.makeCenter()
        let listener = try Listener(agent, names: Self.many + ["com.example.last"])
        try agent.set(listener.name, .suspended)
        var posted: Set<NotifyName> = []
        for round in 0..<3 {
            for place in stride(from: round, to: 800, by: 100) {
                try poster.postOnceConnected(Self.many[place])
                posted.insert(Self.many[place])
            }
            try poster.synchronize(timeout: .patience)
            try agent.replaceAgent()
            #expect(try agent.state(of: listener.name) == "suspended")
        }
        try agent.set(listener.name, .foreground)
        let heard = try listener.all(poster, until: "com.example.last")
        #expect(heard.sorted() == posted.map(\.string).sorted())
    }

    @Test(arguments: busKinds)
    func `agents that wait at the same time for one that is slow lose nothing`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let poster = agent.makeCenter()
        let listener = try Listener(agent, names: Self.many + ["com.example.last"])
        try agent.set(listener.name, .suspended)
        let posted = Self.many.prefix(3)
        for name in posted { try poster.postOnceConnected(name) }
        try poster.synchronize(timeout: .patience)
        kill(agent.agentProcess, SIGSTOP)
        let next = try (0..<3).map { _ in
            try start(
                productPath("notify-agent"),
                ["--address", agent.bus.address, "--replace"],
                environment: withoutDesktop
            )
        }
        // Longer than a change of a state may take, and not as long as they wait.
        try passTime("4")
        kill(agent.agentProcess, SIGCONT)
        // Each takes over from the one before it.
        func left() -> [RunningCommand] { next.filter { ![nil, "Z"].contains(processState($0.pid)) } }
        try #require(waitUntil(timeout: .patience) { left().count == 1 })
        try left().first?.waitForErrorOutput(containing: "ready")
        try agent.set(listener.name, .foreground)
        #expect(try listener.all(poster, until: "com.example.last").sorted() == posted.map(\.string).sorted())
        for command in next { command.send(signal: SIGTERM) }
    }

    @Test(arguments: busKinds)
    func `while agents replace each other no post is lost, of a name or of a prefix`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let poster = agent.makeCenter()
        let prefix = NamePrefix("com.example.prefix.")
        let listener = try Listener(agent, names: Self.many + ["com.example.last"], prefix: prefix)
        // Each round is judged by itself.
        for round in 0..<(isLongRun ? 20 : 1) {
            try agent.set(listener.name, .suspended)
            let before = listener.heard.count
            let (isDone, posts) = (Counter(), Recorder<String>())
            startThread {
                var number = 0
                while isDone.value == 0 {
                    guard let name = try? NotifyName("com.example.prefix.\(round).\(number)"), number < 40_000 else {
                        break
                    }
                    try? poster.postOnceConnected(name)
                    try? poster.postOnceConnected(Self.many[number % 799])
                    posts.append(name.string)
                    number += 1
                    usleep(100)
                }
                isDone.add()
            }
            let isInTime = try replace(agent, times: 5)
            isDone.add()
            try #require(isDone.wait(for: 2, timeout: .patience))
            try poster.synchronize(timeout: .patience)
            // If an agent did not answer in time either, it listens.
            let isHandedOver = isInTime && listener.heard.count == before
            // The last one may have yet to learn of it.
            try #require(waitUntil(timeout: .patience) { try agent.state(of: listener.name) != nil })
            try agent.set(listener.name, .foreground)
            let names = Set(Self.many.prefix(min(799, posts.count)).map(\.string))
            let posted = names.union(posts.elements)
            try #require(waitUntil(timeout: .patience) { names.isSubset(of: listener.heard.elements[before...]) })
            let heard = try listener.all(poster, until: "com.example.last", from: before)
            let lost = posted.subtracting(heard)
            #expect(!isHandedOver || lost == [])
            let unposted = Set(heard).subtracting(posted)
            #expect(isHandedOver ? unposted == [] : unposted.isSubset(of: Self.many.map(\.string)))
            if isHandedOver { #expect(heard.count == Set(heard).count) }
        }
    }

    @Test(arguments: busKinds)
    func `a report that an agent has not read when it is replaced reaches the next one`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let listener = try Listener(agent, names: ["com.example.a"])
        let (isDone, failures) = (Counter(), Recorder<String>())
        startThread {
            var states = [LifecycleState.background, .foreground]
            while isDone.value == 0 {
                states.swapAt(0, 1)
                do { try listener.center.lifecycle.report(states[0], timeout: .patience) } catch {
                    failures.append("\(error)")
                }
            }
            isDone.add()
        }
        _ = try replace(agent, times: isLongRun ? 100 : 10)
        isDone.add()
        try #require(isDone.wait(for: 2, timeout: .patience))
        #expect(failures.elements == [])
    }

    @Test(arguments: busKinds)
    func `what a program has reported counts once it is released, whichever agent is there then`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let listener = try Listener(agent, names: ["com.example.a"])
        try listener.center.lifecycle.report(.background, timeout: .patience)
        try agent.set(listener.name, .foreground)
        for _ in 0..<3 {
            try agent.replaceAgent()
            try #require(waitUntil(timeout: .patience) { try agent.state(of: listener.name) == "foreground" })
        }
        try agent.release(listener.name)
        try #require(waitUntil(timeout: .patience) { try agent.state(of: listener.name) == "background" })
    }

    @Test(arguments: busKinds)
    func `a frozen program is known to the next agent, and stays frozen`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let poster = agent.makeCenter()
        let observer = try start(
            productPath("notify-wait"),
            ["--address", agent.bus.address, "-v", "-f", "com.example.a", "com.example.b", "com.example.c"],
            environment: withoutDesktop
        )
        try observer.waitForErrorOutput(containing: "live")
        try agent.set("pid:\(observer.pid)", .suspended, freeze: true)
        try poster.postOnceConnected("com.example.a")
        try poster.synchronize(timeout: .patience)
        for _ in 0..<3 {
            try agent.replaceAgent()
            #expect(processState(observer.pid) == "T")
            // It can't say so: it is stopped.
            try agent.set("pid:\(observer.pid)", .suspended)
            try agent.set("pid:\(observer.pid)", .suspended, freeze: true)
        }
        try poster.postOnceConnected("com.example.b")
        try poster.synchronize(timeout: .patience)
        try agent.set("pid:\(observer.pid)", .foreground)
        try poster.postOnceConnected("com.example.a")
        #expect(try observer.waitForOutputLines(3) == ["com.example.a", "com.example.b", "com.example.a"])
    }

    @Test(arguments: busKinds, [true, false])
    func `a stopped program that was handed over can be suspended once more`(kind: BusKind, freezes: Bool) throws {
        let agent = try AgentBus(kind)
        let observer = try start(
            productPath("notify-wait"),
            ["--address", agent.bus.address, "-v", "-f", "com.example.a"],
            environment: withoutDesktop
        )
        try observer.waitForErrorOutput(containing: "live")
        try agent.set("pid:\(observer.pid)", .suspended, freeze: freezes)
        if !freezes { observer.send(signal: SIGSTOP) }
        try #require(waitUntil(timeout: .patience) { processState(observer.pid) == "T" })
        // It can't register with the next agent before it continues.
        try agent.replaceAgent()
        try agent.set("pid:\(observer.pid)", .suspended)
        try agent.set("pid:\(observer.pid)", .suspended, freeze: true)
        #expect(processState(observer.pid) == "T")
        if !freezes { observer.send(signal: SIGCONT) }
        try agent.set("pid:\(observer.pid)", .foreground)
        try agent.makeCenter().postOnceConnected("com.example.a")
        #expect(try observer.waitForOutputLines(1) == ["com.example.a"])
    }

    @Test(arguments: busKinds)
    func `a program that is stopped stays parked when the agent is replaced, and misses nothing`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let poster = agent.makeCenter()
        let observer = try start(
            productPath("notify-wait"),
            [
                "--address", agent.bus.address, "-v", "-f", "com.example.a", "com.example.b", "com.example.c",
                "com.example.d",
            ],
            environment: withoutDesktop
        )
        try observer.waitForErrorOutput(containing: "live")
        observer.send(signal: SIGSTOP)
        // It may hear once more what it has just heard.
        try #require(waitUntil { processState(observer.pid) == "T" })
        try poster.postOnceConnected("com.example.a")
        try #require(waitUntil(timeout: .patience) { try agent.isParked(observer.pid) })
        for _ in 0..<3 { try agent.replaceAgent() }
        #expect(try agent.isParked(observer.pid))
        try poster.postOnceConnected("com.example.b")
        try poster.synchronize(timeout: .patience)
        observer.send(signal: SIGCONT)
        try observer.waitForOutput(containing: "com.example.b")
        // Until the agent has heard that it is back, it may hear a post twice.
        try #require(waitUntil(timeout: .patience) { try !agent.isParked(observer.pid) })
        try poster.postOnceConnected("com.example.c")
        try observer.waitForOutput(containing: "com.example.c")
        let lines = try observer.waitForOutputLines(3)
        #expect(lines.sorted() == ["com.example.a", "com.example.b", "com.example.c"])
    }

    @Test(arguments: busKinds)
    func `the states of names outlive an agent that is replaced, whichever program has set them`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let listener = try Listener(agent, names: ["com.example.state"])
        // One that leaves the bus.
        let setter = agent.makeCenter()
        try setter.setState(42, of: "com.example.state")
        try? setter.close(timeout: nil)
        for _ in 0..<3 {
            try agent.replaceAgent()
            #expect(try listener.center.state(of: "com.example.state") == 42)
        }
    }

    private static let name: NotifyName = "com.example.state"

    /// Kills the agent once it has told observers what they are to remember, and starts another one.
    private func killAndRestart(_ agent: AgentBus, _ listener: Listener) throws {
        // Messages that the agent has sent before it answers reach them, even if the agent does not live to see it.
        _ = try agent.state(of: listener.name)
        try agent.killAgent()
        try agent.restartAgent()
    }

    private func expect(_ value: UInt64, _ listener: Listener) throws {
        // It may have yet to notice the new agent.
        let isTold = waitUntil(timeout: .patience) { (try? listener.center.state(of: Self.name)) == value }
        #expect(isTold)
    }

    @Test(arguments: busKinds)
    func `after SIGKILL the state of a name is told again by its observers`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let listeners = try (0..<3).map { _ in try Listener(agent, names: [Self.name]) }
        let setter = agent.makeCenter()
        try setter.setState(42, of: Self.name)
        try? setter.close(timeout: nil)
        for (number, listener) in listeners.enumerated() {
            try killAndRestart(agent, listener)
            try expect(42, listener)
            for other in listeners[number...] {
                let name = try other.center.observingName()
                let isKnown = try waitUntil(timeout: .patience) { try agent.state(of: name) == "foreground" }
                try #require(isKnown)
            }
            // Another one remembers it from now on.
            let name = try listener.center.observingName()
            try? listener.center.close(timeout: nil)
            let hasGone = try waitUntil(timeout: .patience) { try agent.state(of: name) == nil }
            try #require(hasGone)
        }
    }

    @Test(arguments: busKinds)
    func `after SIGKILL the newest state of a name counts, even if a program has an older one`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let listeners = try (0..<3).map { _ in try Listener(agent, names: [Self.name]) }
        for (number, listener) in listeners.enumerated() {
            try listener.center.setState(UInt64(number + 1), of: Self.name)
        }
        // Neither the last one to set it nor the first one to be told it is needed.
        let newest = try #require(listeners.last)
        for _ in 0..<3 {
            try killAndRestart(agent, newest)
            for listener in listeners {
                let name = try listener.center.observingName()
                let isKnown = try waitUntil(timeout: .patience) { try agent.state(of: name) == "foreground" }
                try #require(isKnown)
            }
            #expect(try newest.center.state(of: Self.name) == 3)
        }
    }

    @Test(arguments: busKinds)
    func `a later observer of a name remembers its state if no other does`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let first = try Listener(agent, names: [Self.name])
        try first.center.setState(7, of: Self.name)
        let second = try Listener(agent, names: [Self.name])
        let name = first.name
        try? first.center.close(timeout: nil)
        let hasGone = try waitUntil(timeout: .patience) { try agent.state(of: name) == nil }
        try #require(hasGone)
        try killAndRestart(agent, second)
        try expect(7, second)
    }

    @Test(arguments: busKinds)
    func `nobody but the agent has an observer remember the state of a name`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let listener = try Listener(agent, names: [Self.name])
        try listener.center.setState(7, of: Self.name)
        let stranger = agent.makeCenter()
        try stranger.open()
        let answer = Recorder<String>()
        let name = listener.name
        stranger.perform { link in
            let forged = AgentInterface.NameStateEntry(name: Self.name.string, number: 666, stamp: .max)
            link.call(
                name,
                path: ObserverInterface.path,
                interface: ObserverInterface.name,
                member: ObserverInterface.KeepStates.member,
                ObserverInterface.KeepStates([forged]).arguments
            ) { result in
                if case .failure(let fault) = result { answer.append(fault.name) } else { answer.append("") }
            }
        }
        try #require(answer.wait(forCount: 1, timeout: .patience))
        #expect(answer.elements == ["org.freedesktop.DBus.Error.AccessDenied"])
        try killAndRestart(agent, listener)
        try expect(7, listener)
    }

    @Test(arguments: busKinds)
    func `a change of state is refused or in force while agents replace each other`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let poster = agent.makeCenter()
        let listener = try Listener(agent, names: Self.many + ["com.example.last"])
        for _ in 0..<(isLongRun ? 10 : 1) {
            let before = listener.heard.count
            let isDone = Counter()
            startThread { [agent] in
                while isDone.value == 0 {
                    _ = try? agent.trySetting(listener.name, .suspended)
                    _ = try? agent.trySetting(listener.name, .foreground)
                }
                isDone.add()
            }
            let isInTime = try replace(agent, times: 10)
            isDone.add()
            try #require(isDone.wait(for: 2, timeout: .patience))
            try #require(waitUntil(timeout: .patience) { try agent.state(of: listener.name) != nil })
            try agent.set(listener.name, .foreground)
            let heard = try listener.all(poster, until: "com.example.last", from: before)
            #expect(isInTime ? heard.isEmpty : Set(heard).isSubset(of: Self.many.map(\.string)))
        }
    }
}
