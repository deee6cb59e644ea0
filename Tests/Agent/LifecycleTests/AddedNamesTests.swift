// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// Observers that are added while the state of their program changes.
@Suite struct AddedNamesTests {
    private static let rounds = isLongRun ? 300 : 30

    @Test(arguments: busKinds)
    func `an observer added while suspended misses nothing once addObserver has returned`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let (center, poster) = (agent.makeCenter(), agent.makeCenter())
        let heard = Recorder<String>()
        let first = try center.addObserver(for: "com.example.first", timeout: .seconds(25)) { _ in }
        let name = try center.observingName()
        try poster.open()
        try agent.set(name, .suspended)
        var added: [NotifyCenter.Observation] = []
        for round in 0..<AddedNamesTests.rounds {
            let new = try NotifyName("com.example.added.\(round)")
            added.append(try center.addObserver(for: new, timeout: .seconds(25)) { heard.append($0.string) })
            try poster.postOnceConnected(new)
            let prefix = "org.example.added.\(round)."
            added.append(
                try center.addObserver(matching: .prefix(prefix), timeout: .seconds(25)) {
                    heard.append($0.string)
                }
            )
            try poster.postOnceConnected(NotifyName(prefix + "x"))
        }
        try poster.synchronize(timeout: .patience)
        try center.barrier(timeout: .patience)
        #expect(heard.count == 0)
        try agent.set(name, .foreground)
        try #require(heard.wait(forCount: 2 * AddedNamesTests.rounds, timeout: .patience))
        try center.barrier(timeout: .patience)
        #expect(Set(heard.elements).count == 2 * AddedNamesTests.rounds && heard.count == 2 * AddedNamesTests.rounds)
        for observation in added + [first] { observation.cancel() }
    }

    @Test(arguments: busKinds)
    func `an observer added just before its program is suspended misses nothing`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let (center, poster) = (agent.makeCenter(), agent.makeCenter())
        let heard = Recorder<String>()
        let first = try center.addObserver(for: "com.example.first", timeout: .seconds(25)) { _ in }
        let name = try center.observingName()
        try poster.open()
        for round in 0..<AddedNamesTests.rounds {
            let finished = Counter()
            startThread { [agent] in
                try? agent.set(name, .suspended)
                finished.add()
            }
            var added: [NotifyCenter.Observation] = []
            // How many of them come before the change is a matter of chance.
            let names = try (0..<8).map { try NotifyName("com.example.added.\(round).\($0)") }
            for new in names {
                added.append(try center.addObserver(for: new, timeout: .seconds(25)) { heard.append($0.string) })
                try poster.postOnceConnected(new)
            }
            try #require(finished.wait(for: 1, timeout: .patience))
            try poster.synchronize(timeout: .patience)
            try agent.set(name, .foreground)
            // Twice is possible, before the change and after it.
            let isComplete = waitUntil { Set(heard.elements).isSuperset(of: names.map(\.string)) }
            #expect(isComplete, "\(names.filter { !heard.elements.contains($0.string) })")
            for observation in added { observation.cancel() }
        }
        first.cancel()
    }

    @Test(arguments: busKinds)
    func `an observer is added although the agent that suspends its program does not answer`(kind: BusKind) throws {
        let agent = try AgentBus(kind)
        let (center, poster) = (agent.makeCenter(), agent.makeCenter())
        let heard = Recorder<String>()
        let first = try center.addObserver(for: "com.example.first", timeout: .seconds(25)) { _ in }
        let name = try center.observingName()
        try agent.set(name, .suspended)
        kill(agent.agentProcess, SIGSTOP)
        let added = try center.addObserver(for: "com.example.added", timeout: .seconds(25)) { heard.append($0.string) }
        try poster.postOnceConnected("com.example.added")
        kill(agent.agentProcess, SIGCONT)
        try agent.set(name, .foreground)
        #expect(heard.wait(forCount: 1, timeout: .patience))
        for observation in [first, added] { observation.cancel() }
    }
}
