// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
package import NotifyCore

// Turns a call into the coordinator's event, together with the identity of the caller.
extension Agent {
    package func handle(_ call: BusCall, on link: borrowing BusLink) -> Bool {
        if let launching, launching.postpones(call) { return true }
        do throws(BusFault) {
            if let request = try face.read(call, { properties }, on: link) { try take(request, call, on: link) }
        } catch {
            link.refuse(call, error)
        }
        return true
    }

    private var properties: StandardInterfaces.Properties {
        let totals = coordinator.totals
        return StandardInterfaces.Properties(observers: totals.observers, parked: totals.parked)
    }

    private func take(_ request: Request, _ call: BusCall, on link: borrowing BusLink) throws(BusFault) {
        let sender = call.sender
        switch request {
        case .register(let statement, let socket): try register(call, statement, socket, on: link)
        case .addNames(let names):
            handle(.addNames(face.keep(call), from: sender, names), on: link)
            subjectsHaveChanged(of: sender, isNew: false, on: link)
        case .removeNames(let names):
            handle(.removeNames(face.keep(call), from: sender, names), on: link)
            subjectsHaveChanged(of: sender, isNew: false, on: link)
        case .report(let state): handle(.report(face.keep(call), from: sender, state), on: link)
        case .followDesktop(let follows): handle(.followDesktop(face.keep(call), from: sender, follows), on: link)
        case .setState(let target, let state, let freezes):
            forOthers(call, on: link) { [self] caller, link in
                let reached = freezes ? coordinator.processes(of: target) : []
                let strangers = processes.strangers(to: caller.user, among: reached)
                handle(
                    .setState(face.keep(call), by: caller, target, state, freezes: freezes, strangers: strangers),
                    on: link
                )
            }
        case .release(let target):
            forOthers(call, on: link) { [self] caller, link in
                handle(.release(face.keep(call), by: caller, target), on: link)
            }
        case .setForeground(let pid):
            guard sources.names.contains(SourceSet.shell) else {
                throw .accessDenied("The agent's configuration ignores the desktop.")
            }
            forOthers(call, on: link) { [self] caller, link throws(BusFault) in
                guard caller.mayChange(geteuid()) else {
                    throw .accessDenied(
                        "Only user \(geteuid()) and root can report the focus, not user \(caller.user)."
                    )
                }
                link.reply(to: call)
                sources.hear(sender, pid, on: link)
            }
        case .setNameState(let name, let value):
            link.findUser(of: sender) { [self] user, link in
                switch user {
                case .failure(let fault): link.refuse(call, fault)
                case .success(let user):
                    handle(.setNameState(face.keep(call), by: Caller(user: user), name, value), on: link)
                }
            }
        case .getNameState(let name): answerState(of: name, call, on: link)
        case .list:
            // Who else observes is nothing that a sandbox should let its program see.
            forOthers(call, on: link) { [self] caller, link in
                let entries = coordinator.list.map { AgentInterface.ListEntry($0, for: caller.user) }
                link.reply(to: call, AgentInterface.List.Answer(connections: entries).arguments)
            }
        case .status:
            let version = configuration.version
            let report = AgentInterface.StatusReport(
                coordinator.totals,
                coordinator.sources,
                events: eventPart.entries,
                wanted: coordinator.observedNames,
                launches: launching?.entries ?? [],
                version: version,
                since: started
            )
            link.reply(to: call, report.arguments)
        case .openRelay: relaying.open(for: call, on: link)
        }
    }

    /// Does something that affects others than the caller, if the caller is outside of any sandbox.
    private func forOthers(
        _ call: BusCall,
        on link: borrowing BusLink,
        _ body: @escaping @Sendable (Caller, borrowing BusLink) throws(BusFault) -> Void
    ) {
        identity.findCaller(call.sender, link) { answer, link in
            do throws(BusFault) {
                let caller = try answer.get()
                if let sandbox = caller.sandbox { throw .inSandbox(sandbox) }
                try body(Caller(user: caller.user), link)
            } catch {
                link.refuse(call, error)
            }
        }
    }

    // MARK: - Register

    func register(
        _ call: BusCall,
        _ statement: Newcomer.Statement,
        _ socket: DescriptorBox,
        on link: borrowing BusLink
    ) throws(BusFault) {
        if socket.value >= 0, !mayKeep(socket.value, link) {
            logger.debug("released a socket", metadata: ["connection": "\(call.sender)"])
            socket.close()
        }
        if let id = coordinator.id(of: call.sender), let facts = coordinator.process(of: id).flatMap(coordinator.facts)
        {
            return enter(call, statement, socket, facts, on: link)
        }
        let size = try arrivals.begin(call.sender, statement)
        identity.findClient(call.sender, link) { [self] answer, link in
            arrivals.end(call.sender, size)
            switch answer {
            case .failure(let fault): face.refuse(call, fault, on: link)
            case .success(let client):
                let facts = processes.note(client)
                enter(call, statement, socket, facts, on: link)
                // It may have been refused.
                if coordinator.facts(of: facts.id) == nil { processes.forget(facts.id) }
            }
        }
    }

    private func enter(
        _ call: BusCall,
        _ statement: Newcomer.Statement,
        _ socket: DescriptorBox,
        _ facts: Newcomer.ProcessFacts,
        on link: borrowing BusLink
    ) {
        if !facts.isWatched { socket.close() }
        if call.isRelayed, let fault = relaying.fault(in: statement.subjects, of: facts.application) {
            return face.refuse(call, fault, on: link)
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
        link.gathering { link in
            handle(.register(face.keep(call), newcomer), on: link)
            sockets.forgetOffer(by: call.sender)
            subjectsHaveChanged(of: call.sender, isNew: isNew, on: link)
        }
    }

    /// A program that was started for a name is informed of what has been posted so far.
    private func subjectsHaveChanged(of name: String, isNew: Bool, on link: borrowing BusLink) {
        guard let launching, let id = coordinator.id(of: name), !coordinator.isRelayed(id) else { return }
        launching.observes(id, isNew: isNew, on: link)
    }

    /// Anything other than a connection to this bus might be fed forever, or block. A connection whose socket is not
    /// kept is watched by the bus, and not parked.
    private func mayKeep(_ socket: Int32, _ link: borrowing BusLink) -> Bool {
        guard let other = SocketIdentity(socket), Descriptors.canSpare(socket) else { return false }
        return other == SocketIdentity(link.descriptor)
    }
}

/// Registrations whose sender is still being identified, and that so count towards nobody's quota yet.
struct Arrivals {
    /// The limit for all of them together, in bytes, and the size below which it is not checked.
    private static let limit = 16 << 20
    private static let small = 16_384

    /// How many of one connection are waiting.
    private static let each = 8

    private var waiting: [String: Int] = [:]
    private var bytes = 0

    mutating func begin(_ name: String, _ statement: Newcomer.Statement) throws(BusFault) -> Int {
        guard waiting[name, default: 0] < Arrivals.each else {
            throw .limitExceeded("Too many Register calls from this connection are in progress.")
        }
        let size = 64 * (statement.subjects.names.count + statement.subjects.prefixes.count + statement.states.count)
        guard size < Arrivals.small || bytes + size <= Arrivals.limit else {
            throw .limitExceeded("Too many names are being registered right now; try again.")
        }
        waiting[name, default: 0] += 1
        bytes += size
        return size
    }

    mutating func end(_ name: String, _ size: Int) {
        let rest = (waiting[name] ?? 1) - 1
        waiting[name] = rest > 0 ? rest : nil
        bytes -= size
    }
}
