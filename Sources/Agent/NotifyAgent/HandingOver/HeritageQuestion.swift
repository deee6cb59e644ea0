// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore

/// An agent asks the one before it for what it knows. If that one has handed over to another one meanwhile, it asks the other
/// one, and so on.
final class HeritageQuestion {
    /// How long an agent that is asked may be silent, in milliseconds. Without its knowledge posts are lost.
    private static let patience: Int64 = 10_000
    /// How long it may take as long as it shows that it is there: it may wait for an answer itself, for 25 seconds.
    private static let longest: Int64 = 40_000
    /// How long it is left alone before it is to show that again.
    private static let pause: Int64 = 1_000

    private let agent: Agent
    /// Gone once it has been called.
    private var completion: ((Bequest?) -> Void)?
    /// The agent that was asked last, when it is to have shown that it is there, and when it is to have answered.
    private var asked = ""
    private var limit = MonotonicTime.now
    private var end = MonotonicTime.now

    /// - Parameter completion: called once; receives nil if there is no answer.
    init(by agent: Agent, then completion: @escaping (Bequest?) -> Void) {
        (self.agent, self.completion) = (agent, completion)
    }

    /// Asks whoever owns the agent's name now.
    func ask() {
        agent.link.findOwner(of: AgentInterface.name) { [self] owner in
            guard case .success(let owner) = owner, !agent.isOver else { return finish(nil) }
            startClock(of: owner)
            agent.link.findUser(of: owner) { [self] user in
                switch user {
                case .success(geteuid()): ask(owner)
                case .failure(let fault) where fault.saysGone: askTheNext()
                // What another user's agent says may not be true.
                default: finish(nil)
                }
            }
        }
    }

    /// Each agent that is asked has its own time.
    private func startClock(of owner: String) {
        guard asked != owner else { return }
        (asked, limit, end) = (owner, .now + HeritageQuestion.patience, .now + HeritageQuestion.longest)
        awaitLimit(of: owner)
        pingLater(owner)
    }

    private func pingLater(_ owner: String) {
        _ = agent.loop.after(HeritageQuestion.pause) { [self] in
            if asked == owner, completion != nil { ping(owner) }
        }
    }

    private func ping(_ owner: String) {
        agent.link.call(
            owner,
            path: AgentInterface.path,
            interface: "org.freedesktop.DBus.Peer",
            member: "Ping",
            []
        ) { [self] answer in
            guard asked == owner else { return }
            // Also that it refuses this shows that it is there.
            if case .failure(let fault) = answer, fault.saysGone || fault.saysSilent { return }
            limit = min(.now + HeritageQuestion.patience, end)
            agent.predecessorAnswers()
            pingLater(owner)
        }
    }

    private func awaitLimit(of owner: String) {
        guard asked == owner, completion != nil else { return }
        guard limit <= .now else {
            _ = agent.loop.after(HeritageQuestion.pause) { [self] in awaitLimit(of: owner) }
            return
        }
        agent.logger.notice("the agent before this one hands nothing over: it does not answer")
        finish(nil)
    }

    private func ask(_ owner: String) {
        // Its time limit is the clock's.
        let call = AgentInterface.HandOver()
        agent.link.call(
            owner,
            path: AgentInterface.path,
            interface: AgentInterface.name,
            member: AgentInterface.HandOver.member,
            call.arguments,
            waitsForever: true
        ) { [self] answer in
            switch answer {
            case .success(let values):
                let given = try? AgentInterface.HandOver.Answer(values)
                finish(given.map { Bequest(heritage: $0.heritage, socket: $0.socket) })
            case .failure(let fault) where fault.saysGone: askTheNext()
            case .failure(let fault):
                agent.logger.notice("the agent before this one hands nothing over: \(fault.message)")
                finish(nil)
            }
        }
    }

    /// This one has handed over, or has ended. The next one is looked for until this one has had its time.
    private func askTheNext() {
        if completion != nil, limit > .now { ask() } else { finish(nil) }
    }

    private func finish(_ bequest: Bequest?) {
        if let completion = completion.take() { completion(bequest) } else { bequest?.close() }
    }
}
