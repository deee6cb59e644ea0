// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore

// How this agent leaves what it knows to the next one.
extension Agent {
    /// Whether a successor is waiting for what this agent knows, or has it.
    enum HandingOver { case no, underWay, done }

    /// How long changes that are under way may take before the agent hands over without them, in milliseconds: half as long
    /// as observers wait for an agent.
    private static let patience: Int64 = 1_000
    /// How long the agent waits between two looks, in milliseconds.
    private static let pause: Int64 = 2

    /// The next agent has called.
    func handOver(_ call: BusCall, to caller: Caller) throws(BusFault) {
        // Another user's agent gets nothing, not even root's.
        guard caller.user == geteuid() else {
            throw .accessDenied("Only an agent of user \(geteuid()) can take over from this one.")
        }
        guard call.wantsReply else { return }
        // The bus answers when the next agent ends this connection: the caller then asks that one.
        guard handingOver == .no else { return }
        bequeath(keepsFrozen: true) { [self] bequest in
            guard let bequest else {
                link.refuse(call, .failed("This agent can't hand over what it knows."))
                if handingOver == .done { isReplaced() }
                return
            }
            link.reply(
                to: call,
                AgentInterface.HandOver.Answer(heritage: bequest.heritage, socket: bequest.socket).arguments
            )
            finishWriting()
            bequest.close()
            isReplaced()
        }
    }

    /// Ends. If a successor has called, it gets what this agent knows first.
    ///
    /// - Parameters:
    ///   - leaves: whether there is a service manager that can keep it if it restarts the agent.
    ///   - completion: receives what it is to keep.
    func finish(leaves: Bool, then completion: @escaping (Bequest?) -> Void) {
        guard handingOver != .no, !isOver else {
            return leaves ? leave(then: completion) : end { completion(nil) }
        }
        // The handover that this waits for has a time limit.
        _ = loop.after(Agent.pause) { [self] in finish(leaves: leaves, then: completion) }
    }

    /// The agent ends because it is restarted: it leaves what it knows, for the service manager to keep.
    ///
    /// - Parameter completion: receives nil if the agent ends for good, or has handed over already.
    private func leave(then completion: @escaping (Bequest?) -> Void) {
        if isOver { return end { completion(nil) } }
        isBeingRestarted { [self] isRestarted in
            guard isRestarted, !isOver, handingOver == .no else { return end { completion(nil) } }
            handingOver = .underWay
            moveGuard { [self] in
                bequeath(keepsFrozen: self.guardIsOutside) { [self] bequest in
                    guard let bequest else { return end { completion(nil) } }
                    finishWriting()
                    completion(bequest)
                }
            }
        }
    }

    private func finishWriting() {
        if !link.flush(until: .now + Agent.patience) { logger.warning("the bus did not take everything in time") }
    }

    /// Ends, once no change is under way, and leaves what the agent knows, with its connection, for which the bus then
    /// queues posts.
    ///
    /// - Parameter keepsFrozen: whether frozen processes stay frozen.
    private func bequeath(keepsFrozen: Bool, then completion: @escaping (Bequest?) -> Void) {
        handingOver = .underWay
        launching?.prepareToLeave()
        awaitRest(until: .now + Agent.patience) { [self] in
            if isOver { return completion(nil) }
            completion(passOn(keepsFrozen: keepsFrozen) ?? makeBequest(keepsFrozen: keepsFrozen))
        }
    }

    /// What the agent before this one has left, if this one has not touched it: nothing is lost if the next one takes over
    /// from that one instead.
    private func passOn(keepsFrozen: Bool) -> Bequest? {
        guard phase == .connecting, let bequest = inheritance.predecessor?.bequest.take() else { return nil }
        let frozen = coordinator.heritage.processes.filter { $0.frozenFor != nil }.map(\.id)
        handingOver = .done
        end(keepingFrozen: keepsFrozen ? frozen : [])
        logger.notice("passing on", metadata: ["from": "\(inheritance.predecessor?.name ?? "")"])
        return bequest
    }

    private func end(keepingFrozen kept: [ProcessID]) {
        end(keeping: Set(kept))
        processes.leave(kept)
    }

    private func awaitRest(until limit: MonotonicTime, then completion: @escaping () -> Void) {
        // The answer shows that the bus has taken what was sent before.
        link.callBus("GetId", []) { [self] _ in
            link.writeCollected()
            let isCovered = mayBegin && coversRelayed()
            let isAtRest =
                isCovered && coordinator.isAtRest && receiver.isAtRest && pump.isAtRest && launching?.isAtRest != false
            let isUntouched = inheritance.predecessor != nil && phase == .connecting
            let isTakingOver = inheritance.isAsked || inheritance.predecessor != nil
            // A change of a state is not lost if it is not waited for, but a post is.
            let end = limit + (isTakingOver ? 2 * Agent.patience : 0)
            let isLate = end + (isCovered || isTakingOver ? 0 : 3 * Agent.patience) <= .now
            if isAtRest || isUntouched || isOver || isLate { return completion() }
            _ = loop.after(Agent.pause) { [self] in awaitRest(until: limit, then: completion) }
        }
    }

    /// Hears for programs behind the relay, which ends with this agent. What was posted before has been read by the relay, or
    /// is read now.
    ///
    /// - Returns: whether nothing can be missed any more.
    private func coversRelayed() -> Bool {
        handle(.hearForRelayed)
        let additions = coordinator.interimAdditions
        guard coordinator.hearsForRelayed, relaying.coveredAdditions != additions else {
            return coordinator.hearsForRelayed
        }
        relaying.readUp { [relaying] in relaying.coveredAdditions = max(relaying.coveredAdditions, additions) }
        return false
    }

    private func makeBequest(keepsFrozen: Bool) -> Bequest? {
        // Its stream has not been read up to the mark in time.
        if inheritance.predecessor != nil { handle(.heritageIsPartial) }
        var heritage = coordinator.heritage
        if !heritage.relayed.isEmpty {
            let unread = relaying.unreadNames
            for index in heritage.relayed.indices {
                heritage.relayed[index].add(unread[heritage.relayed[index].name] ?? [])
            }
        }
        if !keepsFrozen { for index in heritage.processes.indices { heritage.processes[index].frozenFor = nil } }
        var estate = Estate()
        // This agent may not have come to opening one again.
        estate.hasRelay = relaying.hasRelay || inheritance.predecessor?.hadRelay == true
        if let launching { (estate.launches, estate.posts) = (launching.heritage, Array(launching.unidentifiedPosts)) }
        for call in openCalls.takeAll() { answer(call, .failure(.replaced)) }
        // The bus answers the calls that have waited when the next agent ends this connection, which their callers know
        // by then. If they were refused now, a program would take the agent for gone, and confirm what is not kept.
        isOver = true
        guard let unread = link.leave() else { return nil }
        loop.remove(receiver)
        handingOver = .done
        end(keepingFrozen: heritage.processes.filter { $0.frozenFor != nil }.map(\.id))
        (estate.heritage, estate.agent, estate.unread) = (heritage, link.uniqueName, unread)
        let file = estate.bytes.map(MemoryFile.make) ?? -1
        let socket = fcntl(link.descriptor, F_DUPFD_CLOEXEC, 0)
        let bequest = Bequest(heritage: file, socket: socket)
        guard file >= 0, socket >= 0 else {
            if file >= 0 { close(file) }
            if socket >= 0 { close(socket) }
            return nil
        }
        logger.notice("handing over", metadata: ["connections": "\(heritage.connections.count)"])
        return bequest
    }

    // MARK: - The service manager

    /// Asks the service manager whether it stops the agent in order to start it again. If it does not answer in time, that is
    /// assumed: it keeps nothing for an agent that it has stopped for good.
    private func isBeingRestarted(then completion: @escaping (Bool) -> Void) {
        let manager = "org.freedesktop.systemd1"
        /// Whichever comes first, the answer or the time.
        var isAnswered = false
        let finish: (Bool) -> Void = { isRestarted in
            guard !isAnswered else { return }
            isAnswered = true
            completion(isRestarted)
        }
        _ = loop.after(Agent.pause * 250) { finish(true) }
        func property(_ name: String, of path: String, _ interface: String, _ completion: @escaping (BusValue?) -> Void)
        {
            link.call(
                manager,
                path: path,
                interface: "org.freedesktop.DBus.Properties",
                member: "Get",
                [.string("\(manager).\(interface)"), .string(name)]
            ) { answer in
                guard case .success(let values) = answer, case .variant(let value)? = values.first else {
                    return completion(nil)
                }
                completion(value)
            }
        }
        link.call(
            manager,
            path: "/org/freedesktop/systemd1",
            interface: "\(manager).Manager",
            member: "GetUnitByPID",
            [.uint32(0)]
        ) { answer in
            guard case .success(let values) = answer, case .text(_, let unit)? = values.first else {
                return finish(false)
            }
            property("Job", of: unit, "Unit") { job in
                guard case .structure(let fields)? = job, fields.count == 2, case .text(_, let path) = fields[1] else {
                    return finish(false)
                }
                property("JobType", of: path, "Job") { finish($0?.string == "restart") }
            }
        }
    }

    // MARK: - What is frozen

    /// Whether the process that lets continue what the next agent does not take over outlives the agent's unit.
    private var guardIsOutside: Bool {
        guard let child = processes.guardProcess, let own = ProcessFolder.cgroup(of: ProcessHandle.own) else {
            return false
        }
        return ProcessFolder.cgroup(of: child).map { $0 != own } ?? false
    }

    /// Has the service manager put that process into a unit of its own: before the next agent is started, all others of the
    /// unit must have ended.
    private func moveGuard(then completion: @escaping () -> Void) {
        guard let child = processes.guardProcess else { return completion() }
        let manager = "org.freedesktop.systemd1"
        let values: [(String, BusValue)] = [
            ("Description", .string("Lets continue what an agent of NotifyBus has frozen")),
            ("PIDs", .array(element: "u", [.uint32(UInt32(child))])), ("CollectMode", .string("inactive-or-failed")),
        ]
        let properties = BusValue.array(element: "(sv)", values.map { .structure([.string($0.0), .variant($0.1)]) })
        let limit = MonotonicTime.now + Agent.patience / 2
        link.call(
            manager,
            path: "/org/freedesktop/systemd1",
            interface: "\(manager).Manager",
            member: "StartTransientUnit",
            [.string("notify-thaw-\(child).scope"), .string("fail"), properties, .array(element: "(sa(sv))", [])]
        ) { [logger] answer in
            if case .failure(let fault) = answer {
                logger.warning("thawing what is frozen: the service manager says '\(fault.message)'")
            }
        }
        // The job has begun some time after the answer, and is then gone soon.
        awaitMove(until: limit, then: completion)
    }

    private func awaitMove(until limit: MonotonicTime, then completion: @escaping () -> Void) {
        if guardIsOutside || limit <= .now { return completion() }
        _ = loop.after(Agent.pause) { [self] in awaitMove(until: limit, then: completion) }
    }
}
