// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore
import NotifyNames

/// The connection of the agent before this one, with what it had yet to read.
struct Predecessor {
    /// By which the watcher knows its stream. No connection has this number.
    static let id = ConnectionID(0)

    let name: String
    /// What it has left, until this agent begins to read its stream.
    let bequest: BequestBox
    let unread: [UInt8]
    let hadRelay: Bool
    let launches: [LaunchHeritage]
    let posts: [UnidentifiedPost]
    var whenRead: (() -> Void)?
}

// How this agent takes over what the one before it knew.
//
// It subscribes to the names that the other one had subscribed to, takes over the bus name, and only then reads what the bus
// has queued for the other one. So each post is in that queue, or heard here, or both.
extension Agent {
    /// What the agent before this one leaves.
    enum Inheritance {
        /// Nothing is known of one.
        case none
        /// It has been asked for what it knows, and has not answered.
        case asked
        /// Its connection may still own the bus name. The value is what it had yet to read, if that is still to be done.
        case left(Predecessor?)

        var isAsked: Bool { if case .asked = self { true } else { false } }
        var isLeft: Bool { if case .left = self { true } else { false } }
        var predecessor: Predecessor? { if case .left(let predecessor) = self { predecessor } else { nil } }
    }

    /// Within which time all observers have registered with this agent, in milliseconds.
    private static let arrival: Int64 = 10_000

    /// - Parameter completion: called at once if there is nothing to take over.
    func inheritIfPossible(otherwise completion: @escaping () -> Void) {
        if let bequest = configuration.bequest { return inherit(bequest, otherwise: completion) }
        guard configuration.replaces else { return completion() }
        inheritance = .asked
        HeritageQuestion(by: self) { [self] bequest in
            if isOver {
                bequest?.close()
                return
            }
            inheritance = .none
            if let bequest { inherit(bequest, otherwise: completion) } else { completion() }
        }.ask()
    }

    private func inherit(_ bequest: Bequest, otherwise completion: () -> Void) {
        guard SocketIdentity(bequest.socket) == SocketIdentity(link.descriptor), SocketIdentity(link.descriptor) != nil
        else {
            logger.warning("ignored what another agent has left: it is not about this bus")
            bequest.close()
            return completion()
        }
        let estate: Estate
        do throws(ArgumentError) {
            guard let bytes = MemoryFile.read(bequest.heritage) else { throw .value("It is not a file in memory.") }
            estate = try Estate(reading: bytes)
        } catch {
            logger.warning("ignored what another agent has left: \(error.text(for: "It"))")
            // The bus may have yet to notice the end of its connection, which owns the name.
            inheritance = .left(nil)
            bequest.end()
            return completion()
        }
        let predecessor = Predecessor(
            name: estate.agent,
            bequest: BequestBox(bequest),
            unread: estate.unread,
            hadRelay: estate.hasRelay,
            launches: estate.launches,
            posts: estate.posts
        )
        inheritance = .left(predecessor)
        if estate.hasUnreadable {
            logger.warning("ignored a part of what another agent has left: it can't be read")
        }
        var heritage = estate.heritage
        // Without a relay they never hear here.
        if !configuration.relay.isOpen { heritage.relayed = [] }
        let all = heritage.connections.map(\.process) + heritage.processes.map(\.id)
        let facts = Set(all).sorted().compactMap(processes.find)
        for index in heritage.processes.indices {
            guard let user = heritage.processes[index].frozenFor else { continue }
            // It may have been continued from outside.
            if !processes.adopt(heritage.processes[index].id, frozenFor: user) {
                heritage.processes[index].frozenFor = nil
            }
        }
        handle(.inherit(heritage, facts))
        for facts in facts where coordinator.facts(of: facts.id) == nil { processes.forget(facts.id) }
    }

    /// From now on this agent hears what the one before it heard.
    func heritageIsSubscribed() {
        let launching = makeLaunching()
        self.launching = launching
        let predecessor = inheritance.predecessor
        launching.inherit(predecessor?.launches ?? [], predecessor?.posts ?? []) { [self] in requestName() }
    }

    /// Reads what the agent before this one has not read, and ends its connection.
    ///
    /// - Parameter completion: called when that is done, or at once if there is none.
    func readPredecessor(then completion: @escaping () -> Void) {
        guard var predecessor = inheritance.predecessor else { return completion() }
        guard let bequest = predecessor.bequest.take() else { return }
        close(bequest.heritage)
        // This agent hears posts behind the mark itself.
        let mark = UInt64.random(in: 1...(.max))
        link.tell(
            predecessor.name,
            path: ObserverInterface.path,
            interface: ObserverInterface.name,
            member: ObserverInterface.Mark.member,
            ObserverInterface.Mark(mark).arguments
        )
        let stream = ParkedStream(socket: bequest.socket, process: nil, agent: link.uniqueName, mark: mark)
        if let launching {
            stream.passOn(launching.subjects) { [weak launching] in launching?.handleFound($0, from: $1) }
        }
        link.callBus("GetId", []) { _ in stream.markIsRouted() }
        stream.feed(predecessor.unread)
        predecessor.whenRead = completion
        inheritance = .left(predecessor)
        watcher.drain(stream, of: Predecessor.id)
    }

    func predecessorIsRead(_ outcome: ParkedStream.Outcome, _ verified: [NotifyName]) {
        var outcome = outcome
        let predecessor = inheritance.predecessor
        for name in outcome.names.take() + outcome.unverified.take() + verified { handle(.posted(name)) }
        if !outcome.hasMark { handle(.heritageIsPartial) }
        logger.notice(
            "took over",
            metadata: ["from": "\(predecessor?.name ?? "")", "mark": outcome.hasMark ? "seen" : "missed"]
        )
        inheritance = .left(nil)
        _ = loop.after(Agent.arrival) { [self] in handle(.heritageIsOld) }
        predecessor?.whenRead?()
        // Programs in sandboxes hear nothing until they have registered here.
        if predecessor?.hadRelay == true { relaying.openAgain() }
    }

    /// The relay hears what a program has told it so far.
    func relayHears(_ name: String) {
        handle(.relayHears(name))
        // A program that observes something of which the relay refuses a part tells it in several calls.
        guard coordinator.interimID(of: name) != nil, relaying.telling.insert(name).inserted else { return }
        _ = loop.after(Agent.arrival) { [self] in
            relaying.telling.remove(name)
            handle(.relayHearsAll(name))
        }
    }
}
