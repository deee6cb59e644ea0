// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
package import NotifyCore

// Owners take turns, so that nobody's calls wait for all of somebody else's.
extension Agent {
    package func refuses(_ call: BusCall.Head) -> Bool {
        guard let refusal = intake.refusal(of: call, isObserver: coordinator.id(of: call.sender) != nil) else {
            return false
        }
        noteRefusal(of: call.sender, isAddition: call.hasMember(AgentInterface.AddNames.member))
        if intake.ignores(call.sender) { intake.askQuestions() } else { link.refuse(call, BusFault(refusal)) }
        return true
    }

    package func handle(_ call: BusCall) -> Bool {
        // Only the socket that comes with a registration is used, and while the call waits there may be many.
        let mayKeep =
            !call.hasDescriptors
            || call.member == AgentInterface.Register.member && call.descriptors.allSatisfy(Descriptors.canSpare)
        let call = mayKeep ? call : call.closingDescriptors
        switch intake.take(call, isObserver: coordinator.id(of: call.sender) != nil) {
        case .begin(let charge): begin(intake.begun(call, charge))
        case .waits: break
        case .refused(let refusal): refuse(call, BusFault(refusal))
        case .unknown:
            identity.findOwner(call.sender) { [self] owner in
                for (item, refusal) in intake.identify(call.sender, as: try? owner.get()) {
                    guard case .call(let call) = item else { continue }
                    if case .failure(let fault) = owner {
                        refuse(call, fault)
                    } else {
                        refuse(call, BusFault(refusal))
                    }
                }
                while intake.hasTime, handleNext() {}
            }
        }
        return true
    }

    /// Handles calls that have waited, until the bus must be read again.
    func serve() {
        let end = intake.endOfSlice
        while handleNext(), MonotonicTime.now < end {}
    }

    /// - Returns: false if none is waiting.
    private func handleNext() -> Bool {
        guard let turn = intake.next() else { return false }
        switch turn.call {
        case .call(let call): begin(intake.begun(call, turn.charge))
        case .work(let work): work()
        }
        return true
    }

    private func refuse(_ call: BusCall, _ fault: BusFault) {
        call.arguments.closeDescriptors()
        noteRefusal(of: call.sender, isAddition: call.member == AgentInterface.AddNames.member)
        if intake.ignores(call.sender) { intake.askQuestions() } else { link.refuse(call, fault) }
    }

    /// Before its state changes, an observer waits until all its additions have been taken note of, or refused.
    private func noteRefusal(of sender: String, isAddition: Bool) {
        if isAddition { handle(.additionWasRefused(from: sender)) }
    }
}

// Turns a call into the coordinator's event, together with the identity of the caller.
extension Agent {
    private func begin(_ call: BusCall) {
        if let launching, launching.postpones(call) { return }
        do throws(BusFault) {
            if wasReplaced { throw .replaced }
            if call.wantsReply, let refusal = intake.refusal(ofAnswersTo: call.sender) {
                return refuse(call, BusFault(refusal))
            }
            if let request = try frontend.read(call, { properties }) { try take(request, call) }
        } catch {
            link.refuse(call, error)
        }
    }

    private var properties: StandardInterfaces.Properties {
        let totals = coordinator.totals
        return StandardInterfaces.Properties(observers: totals.observers, parked: totals.parked)
    }

    private func take(_ request: Request, _ call: BusCall) throws(BusFault) {
        let sender = call.sender
        // Who wants no answer is asking nothing.
        if !call.wantsReply, request.isQuestion { return }
        switch request {
        case .register(let statement, let socket): try register(call, statement, socket)
        case .addNames(let names):
            handle(.addNames(frontend.keep(call), from: sender, names))
            subjectsHaveChanged(of: sender, isNew: false)
        case .removeNames(let names):
            handle(.removeNames(frontend.keep(call), from: sender, names))
            subjectsHaveChanged(of: sender, isNew: false)
        case .report(let state): handle(.report(frontend.keep(call), from: sender, state))
        case .followDesktop(let follows): handle(.followDesktop(frontend.keep(call), from: sender, follows))
        case .setState(let target, let state, let freezes):
            forOthers(call) { [self] caller in
                let reached = freezes ? coordinator.processes(of: target) : []
                let strangers = processes.strangers(to: caller.user, among: reached)
                handle(
                    .setState(frontend.keep(call), by: caller, target, state, freezes: freezes, strangers: strangers)
                )
            }
        case .release(let target):
            forOthers(call) { [self] caller in
                handle(.release(frontend.keep(call), by: caller, target))
            }
        case .setForeground(let pid):
            guard let shell = sources.source(ShellSource.self) else {
                throw .accessDenied("The agent's configuration ignores the desktop.")
            }
            forOthers(call) { [self] caller throws(BusFault) in
                guard caller.mayChange(geteuid()) else {
                    throw .accessDenied(
                        "Only user \(geteuid()) and root can report the focus, not user \(caller.user)."
                    )
                }
                link.reply(to: call)
                shell.hear(sender, pid)
            }
        case .setNameState(let name, let value):
            guard let user = intake.user(of: sender) else { throw BusFault(Refusal.unidentified(sender)) }
            handle(.setNameState(frontend.keep(call), by: Caller(user: user), name, value))
        case .getNameState(let name): answerState(of: name, call)
        case .list:
            // Who else observes is nothing that a sandbox should let its program see.
            forOthers(call) { [self] caller in
                link.reply(to: call, AgentInterface.List.Answer(coordinator.list, for: caller.user).arguments)
            }
        case .status:
            let version = configuration.version
            var report = AgentInterface.StatusReport(
                coordinator.totals,
                coordinator.sources,
                events: eventPart.entries,
                wanted: coordinator.observedNames,
                launches: launching?.entries ?? [],
                version: version,
                since: started
            )
            report.faults = configuration.faults
            report.longestStep = UInt64(loop.longestStep / 1_000)
            link.reply(to: call, report.arguments)
        case .openRelay: relaying.open(for: call)
        }
    }

    /// Does something that affects others than the caller, if the caller is outside of any sandbox.
    private func forOthers(
        _ call: BusCall,
        _ body: @escaping (Caller) throws(BusFault) -> Void
    ) {
        identity.findCaller(call.sender) { [self] answer in
            do throws(BusFault) {
                if wasReplaced { throw .replaced }
                let caller = try answer.get()
                if let sandbox = caller.sandbox { throw .inSandbox(sandbox) }
                try body(Caller(user: caller.user))
            } catch {
                link.refuse(call, error)
            }
        }
    }

    // MARK: - Register

    func register(
        _ call: BusCall,
        _ statement: Newcomer.Statement,
        _ socket: DescriptorBox
    ) throws(BusFault) {
        if socket.value >= 0, !mayKeep(socket.value) {
            logger.debug("released a socket", metadata: ["connection": "\(call.sender)"])
            socket.close()
        }
        if let id = coordinator.id(of: call.sender), let facts = coordinator.process(of: id).flatMap(coordinator.facts)
        {
            return enter(call, statement, socket, facts)
        }
        identity.findClient(call.sender) { [self] answer in
            switch answer {
            case .failure(let fault): frontend.refuse(call, fault)
            case .success(let client):
                let facts = processes.note(client)
                enter(call, statement, socket, facts)
                // It may have been refused.
                if coordinator.facts(of: facts.id) == nil { processes.forget(facts.id) }
            }
        }
    }

    private func enter(
        _ call: BusCall,
        _ statement: Newcomer.Statement,
        _ socket: DescriptorBox,
        _ facts: Newcomer.ProcessFacts
    ) {
        if !facts.isWatched { socket.close() }
        if call.isRelayed, let fault = relaying.fault(in: statement.subjects, of: facts.application) {
            return frontend.refuse(call, fault)
        }
        let newcomer = Newcomer(
            name: call.sender,
            user: facts.id.user,
            process: facts,
            hasSocket: socket.value >= 0,
            isRelayed: call.isRelayed,
            statement: statement
        )
        sockets.offer(socket, by: call.sender)
        let isNew = coordinator.id(of: call.sender) == nil && statement.state == nil && statement.previous.isEmpty
        // A started program is informed of what the connection has not heard before the reply: the reply and the mark
        // after it are adjacent in the stream of posts.
        link.gathering {
            handle(.register(frontend.keep(call), newcomer))
            sockets.forgetOffer(by: call.sender)
            subjectsHaveChanged(of: call.sender, isNew: isNew)
        }
    }

    /// A program that was started for a name is informed of what has been posted so far.
    private func subjectsHaveChanged(of name: String, isNew: Bool) {
        guard let launching, let id = coordinator.id(of: name), !coordinator.isRelayed(id) else { return }
        launching.observes(id, isNew: isNew)
    }

    /// Anything other than a connection to this bus might be fed forever, or block. A connection whose socket is not
    /// kept is watched by the bus, and not parked.
    private func mayKeep(_ socket: Int32) -> Bool {
        guard let other = SocketIdentity(socket), Descriptors.canSpare(socket) else { return false }
        return other == SocketIdentity(link.descriptor)
    }
}

// How calls to the relay reach the coordinator.
extension Agent {
    func handleRelayed(_ call: BusCall, _ request: Request) {
        let sender = call.sender
        do throws(BusFault) {
            switch request {
            case .register(let statement, let socket): try register(call, statement, socket)
            case .addNames(let names):
                if let fault = relaying.fault(in: names, of: application(of: sender)) { throw fault }
                handle(.addNames(frontend.keep(call), from: sender, names))
            case .removeNames(let names): handle(.removeNames(frontend.keep(call), from: sender, names))
            case .report(let state): handle(.report(frontend.keep(call), from: sender, state))
            case .followDesktop(let follows): handle(.followDesktop(frontend.keep(call), from: sender, follows))
            case .getNameState(let name): answerState(of: name, call)
            case .setNameState(let name, let value):
                guard let id = coordinator.id(of: sender), let user = coordinator.user(of: sender),
                    coordinator.subjects(of: id)?.names.contains(name) == true
                else {
                    let refusal =
                        "A program in a sandbox can set the state of a name that it observes, and of no other."
                    throw BusFault(name: AgentInterface.ErrorName.notObserved, message: refusal)
                }
                handle(.setNameState(frontend.keep(call), by: Caller(user: user), name, value))
            case .setState, .release, .setForeground, .list, .status, .openRelay: throw .unknownMethod(call)
            }
        } catch {
            frontend.refuse(call, error)
        }
    }

    private func application(of name: String) -> String {
        coordinator.id(of: name).flatMap(coordinator.process).flatMap(coordinator.facts)?.application ?? ""
    }

    func wasTold(_ name: String, _ reply: Event.Reply) {
        if let id = coordinator.id(of: name) { handle(.told(id, reply)) }
    }

    /// Hands names to the relay, which keeps them until the program has read them.
    func deliverRelayed(_ names: [NotifyName], to id: ConnectionID) {
        guard let name = coordinator.name(of: id), !names.isEmpty else { return }
        relaying.keep(names, for: name)
        handle(.delivered(id))
    }

    /// The relay has ended, so nobody hears for these connections until they register with the next one.
    func relayHasLost(_ names: [String]) {
        relaying.close()
        for name in names {
            if let id = coordinator.id(of: name) { handle(.connectionEnded(id)) }
        }
    }
}
