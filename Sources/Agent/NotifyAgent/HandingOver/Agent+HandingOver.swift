// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore

// How this agent leaves what it knows to the next one.
extension Agent {
    /// Whether a successor is waiting for what this agent knows, or has it.
    struct HandingOver {
        enum Stage { case no, underWay, done }

        /// How many of those that have called since are remembered.
        static let mostOthers = 16

        var stage = Stage.no
        /// When it began, if it is under way.
        var begin = MonotonicTime.now
        /// Whether it is waiting only for the service manager.
        var awaitsAnswers = false
        /// Called meanwhile: the next of them takes over if the first one goes away before it has.
        var others: [BusCall] = []
    }

    /// How long changes that are under way may take before the agent hands over without them, in milliseconds: half as long
    /// as observers wait for an agent. For the service manager it waits as long as for any answer.
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
        guard handingOver.stage == .no else {
            // Usually the bus answers, when the next agent ends this connection: the caller then asks that one.
            guard handingOver.stage == .underWay, handingOver.others.count < HandingOver.mostOthers else { return }
            logger.notice("another agent waits to take over, too", metadata: ["from": "\(call.sender)"])
            handingOver.others.append(call)
            return
        }
        handOver(call)
    }

    private func handOver(_ call: BusCall) {
        bequeath(to: call.sender, keepsFrozen: true) { [self] bequest in
            guard let bequest else {
                if handingOver.stage == .no { return stay() }
                link.refuse(call, .failed("This agent can't hand over what it knows."))
                if handingOver.stage == .done { isReplaced() }
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

    /// The agent that was to take over has gone: another one that has called takes over, or none.
    private func stay() {
        if !handingOver.others.isEmpty { return handOver(handingOver.others.removeFirst()) }
        logger.notice("staying: the agent that was to take over is gone")
        launching?.stay()
        handle(.leaveToRelay)
    }

    /// Ends. If a successor has called, it gets what this agent knows first.
    ///
    /// - Parameters:
    ///   - leaves: whether there is a service manager that can keep it if it restarts the agent.
    ///   - completion: receives what it is to keep.
    func finish(leaves: Bool, then completion: @escaping (Bequest?) -> Void) {
        guard handingOver.stage != .no, !isOver else {
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
            // A successor may have called meanwhile.
            if handingOver.stage != .no, !isOver { return finish(leaves: true, then: completion) }
            // What another agent has been asked for, that one still has.
            guard isRestarted, !isOver, !inheritance.isAsked else { return end { completion(nil) } }
            (handingOver.stage, handingOver.begin) = (.underWay, .now)
            moveGuard { [self] in
                bequeath(to: nil, keepsFrozen: self.guardIsOutside) { [self] bequest in
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
    /// - Parameters:
    ///   - successor: who gets it. If it leaves the bus before, the agent does not end.
    ///   - keepsFrozen: whether frozen processes stay frozen.
    private func bequeath(to successor: String?, keepsFrozen: Bool, then completion: @escaping (Bequest?) -> Void) {
        (handingOver.stage, handingOver.begin) = (.underWay, .now)
        launching?.prepareToLeave()
        awaitRest(of: successor, until: .now + Agent.patience) { [self] isWanted in
            if isOver { return completion(nil) }
            guard isWanted else {
                (handingOver.stage, handingOver.awaitsAnswers) = (.no, false)
                return completion(nil)
            }
            completion(passOn(keepsFrozen: keepsFrozen) ?? makeBequest(keepsFrozen: keepsFrozen))
        }
    }

    /// What the agent before this one has left, if this one has not touched it: nothing is lost if the next one takes over
    /// from that one instead.
    private func passOn(keepsFrozen: Bool) -> Bequest? {
        guard phase == .connecting, let bequest = inheritance.predecessor?.bequest.take() else { return nil }
        let frozen = coordinator.heritage.processes.filter { $0.frozenFor != nil }.map(\.id)
        handingOver.stage = .done
        end(keepingFrozen: keepsFrozen ? frozen : [])
        logger.notice("passing on", metadata: ["from": "\(inheritance.predecessor?.name ?? "")"])
        return bequest
    }

    private func end(keepingFrozen kept: [ProcessID]) {
        end(keeping: Set(kept))
        processes.leave(kept)
    }

    /// - Parameter completion: called with whether the successor is still there.
    private func awaitRest(
        of successor: String?,
        until limit: MonotonicTime,
        then completion: @escaping (Bool) -> Void
    ) {
        synchronize(with: successor) { [self] isThere in
            guard isThere else { return completion(false) }
            link.writeCollected()
            let isCovered = mayBegin && coversRelayed()
            let isAtRest =
                isCovered && coordinator.isAtRest && receiver.isAtRest && pump.isAtRest && launching?.isAtRest != false
            let isUntouched = inheritance.predecessor != nil && phase == .connecting
            let isTakingOver = inheritance.isAsked || inheritance.predecessor != nil
            // A change of a state is not lost if it is not waited for, but a post is.
            let end = limit + (isTakingOver ? 2 * Agent.patience : 0)
            let isLate = end + (isCovered || isTakingOver ? 0 : 3 * Agent.patience) <= .now
            if isAtRest || isUntouched || isOver || isLate { return awaitAnswers(for: successor, then: completion) }
            _ = loop.after(Agent.pause) { [self] in awaitRest(of: successor, until: limit, then: completion) }
        }
    }

    /// Waits until the service manager has taken all starts: those of an agent that has left the bus by then it refuses.
    private func awaitAnswers(for successor: String?, then completion: @escaping (Bool) -> Void) {
        guard launching?.awaitsAnswers == true, !isOver else {
            if !handingOver.awaitsAnswers || isOver { return completion(true) }
            // Other changes may have begun since.
            handingOver.awaitsAnswers = false
            return awaitRest(of: successor, until: .now + Agent.patience, then: completion)
        }
        if !handingOver.awaitsAnswers { logger.notice("handing over later: waiting for the service manager") }
        handingOver.awaitsAnswers = true
        _ = loop.after(10 * Agent.pause) { [self] in
            synchronize(with: successor) { [self] isThere in
                if isThere { awaitAnswers(for: successor, then: completion) } else { completion(false) }
            }
        }
    }

    /// The bus takes what was sent before.
    ///
    /// - Parameter completion: called with whether the successor is still there.
    private func synchronize(with successor: String?, then completion: @escaping (Bool) -> Void) {
        guard let successor else { return link.callBus("GetId", []) { _ in completion(true) } }
        link.callBus("NameHasOwner", [.string(successor)]) { answer in
            if case .success(let values) = answer, case .boolean(false)? = values.first { return completion(false) }
            completion(true)
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
        handingOver.stage = .done
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
