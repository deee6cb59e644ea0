// SPDX-License-Identifier: Apache-2.0

import CLinux
import NotifyCoordinator
package import NotifyCore
import NotifyNames

/// A running agent: the handle by which other threads talk to the one on which it lives.
package final class AgentService: Sendable {
    /// The names of all sources of facts, as Status lists them.
    package static let sourceNames = DecidingSource.all.map(\.name) + [Coordinator.freezerSource]
    /// What `ignore` accepts in addition.
    package static let eventSourceNames = SystemEvent.Source.allCases.map(\.rawValue).filter {
        !sourceNames.contains($0)
    }

    /// How long the bus may take to see to what the agent does at its end, in milliseconds.
    private static let farewell: Int64 = 2_000
    /// How long it may take the agent to leave what it knows, or to hand it over, in milliseconds.
    private static let leaving: Int64 = 8_000
    /// The same if the agent waits for the service manager meanwhile, which has 25 seconds.
    private static let longest: Int64 = 35_000

    private let thread: EventThread

    /// Connects, and starts to serve once the bus has granted the name.
    ///
    /// - Parameter report: called on the agent's thread.
    package init(
        bus: NotifyCenter.Bus,
        configuration: Agent.Configuration,
        logger: Logger,
        report: @escaping @Sendable (Agent.Report) -> Void
    ) throws(NotifyBusError) {
        // Some 10 MB stayed resident without it after 250 connections at their limits had left.
        linux_keep_little_memory()
        let thread = try EventThread(name: "agent")
        self.thread = thread
        let outcome = Monitor<Result<Void, NotifyBusError>?>(nil)
        thread.perform { loop in
            do throws(NotifyBusError) {
                let agent = try Agent(configuration, bus: bus, logger: logger, on: loop, report: report)
                loop.tenant = agent
                outcome.withLock { $0 = .success(()) }
                outcome.wakeAll()
                agent.open()
            } catch {
                outcome.withLock { $0 = .failure(error) }
                outcome.wakeAll()
            }
        }
        let result: Result<Void, NotifyBusError>? = outcome.wait(until: nil) { $0 }
        if case .failure(let error)? = result {
            thread.stop(waits: true)
            throw error
        }
    }

    /// Rereads the files of `launch.d`.
    package func reload() {
        thread.perform { loop in (loop.tenant as? Agent)?.loadLaunches() }
    }

    /// Thaws everything that the agent has frozen, releases the name and closes everything.
    ///
    /// - Parameter leaves: whether there is a service manager that can keep what the agent knows if it restarts the agent.
    /// - Returns: what to give it; then processes stay frozen, and the name is not released.
    package func stop(leaves: Bool = false) -> Bequest? {
        let outcome = Monitor<Bequest??>(nil)
        let end: @Sendable (Bequest?) -> Void = { bequest in
            outcome.withLock { $0 = .some(bequest) }
            outcome.wakeAll()
        }
        thread.perform { loop in
            guard let agent = loop.tenant as? Agent else { return end(nil) }
            agent.finish(leaves: leaves, then: end)
        }
        // If the bus is gone, or does not answer, there is nothing to wait for.
        let began = MonotonicTime.now
        var limit = began + (leaves ? AgentService.leaving : AgentService.farewell)
        var bequest: Bequest?? = outcome.wait(until: limit) { $0 }
        while bequest == nil, case let end = timeOfEnd(began), limit < end {
            limit = end
            bequest = outcome.wait(until: limit) { $0 }
        }
        thread.stop(waits: true)
        return bequest ?? nil
    }

    /// When the agent has ended at the latest, by what it is doing now.
    ///
    /// - Parameter began: when it was asked to end.
    private func timeOfEnd(_ began: MonotonicTime) -> MonotonicTime {
        let answer = Monitor<MonotonicTime?>(nil)
        thread.perform { loop in
            let last = began + AgentService.longest
            var end = began + AgentService.farewell
            if let handingOver = (loop.tenant as? Agent)?.handingOver, handingOver.stage == .underWay {
                // One successor may have gone, and the next one has its own time.
                end = handingOver.awaitsAnswers ? last : min(last, handingOver.begin + AgentService.leaving)
            }
            answer.withLock { $0 = end }
            answer.wakeAll()
        }
        return answer.wait(until: .now + AgentService.farewell) { $0 } ?? began
    }
}
