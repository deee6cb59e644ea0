// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore
import NotifyNames

// Entries that are due when an agent takes over from another one.
//
// From the first preparations of the one until the other knows what runs, at least one of their connections hears each
// name, also those that a program hears itself: it may exit meanwhile. Nothing is started before the next agent has read
// what the bus had queued for the other one, so that a post that both have heard counts once.
extension Launching {
    /// When all senders in the stream of the agent before this one have been asked about. No connection has this number.
    static let identification = LaunchMark(Predecessor.id, number: 0)

    /// What the next agent is told.
    var heritage: [LaunchHeritage] { launcher.heritage }
    var unidentifiedPosts: Set<UnidentifiedPost> { unidentified.all }
    var isAtRest: Bool { launcher.isAtRest && unidentified.isEmpty }

    /// Whether a start has been requested that may yet be refused: the service manager takes none from an agent that has left
    /// the bus by then.
    var awaitsAnswers: Bool { manager?.hasUnacceptedStarts == true }

    /// Another agent is about to take over: it starts what is due from now on.
    func prepareToLeave() {
        isLeaving = true
        handle(.holdBack(true))
        keepAll {}
    }

    /// It has not taken over.
    func stay() {
        isLeaving = false
        handle(.holdBack(false))
    }

    /// Reads the files, and hears all names, but starts nothing until the stream of the agent before this one is read.
    ///
    /// - Parameter completion: called once the bus delivers all names.
    func inherit(_ heritage: [LaunchHeritage], _ posts: [UnidentifiedPost], then completion: @escaping () -> Void) {
        postponed = []
        load(inheriting: heritage)
        for post in posts { handle(post: post.name, from: post.sender) }
        keepAll(then: completion)
    }

    /// A post in the stream of the agent before this one.
    func handleFound(_ name: NotifyName, from sender: String) {
        guard postponed != nil, found.count < UnidentifiedPosts<BusCall>.limitOfAll,
            found.insert(UnidentifiedPost(name, from: sender)).inserted
        else { return }
        guard name.hasOwner else { return handle(post: name, from: sender) }
        link.findUser(of: sender) { [self] user in
            if let user = try? user.get(), name.isOpen(to: user) { handle(post: name, from: sender) }
        }
    }

    /// The stream of the agent before this one has been read up to where this one hears everything.
    ///
    /// - Parameter completion: called once the senders of the posts in it are known. They may leave as soon as that
    ///   agent's connection ends.
    func streamIsRead(then completion: @escaping () -> Void) {
        whenIdentified = completion
        // By then the posts that both have heard have come, and the senders of names that have an owner are known.
        link.callBus("GetId", []) { [self] _ in
            if unidentified.pass(Launching.identification) { allIsKnown() }
        }
    }

    /// From now on programs are started.
    func allIsKnown() {
        let attachments = postponed ?? []
        (postponed, found) = (nil, [])
        if launcher.entries.contains(where: \.1.runsByManager) { findManager() }
        for (id, entry) in attachments { attach(id, entry) }
        observeAll()
        keepNothingIfAwake()
        let completion = whenIdentified
        whenIdentified = nil
        completion?()
    }

    /// Has the bus deliver all names, whatever entries want.
    private func keepAll(then completion: @escaping () -> Void) {
        guard kept == nil, !launcher.isEmpty else { return completion() }
        let all = launcher.subjects
        kept = all
        let first = subscriptions.insert(all)
        if first.isEmpty { return link.callBus("GetId", []) { _ in completion() } }
        receiver.subscribe(names: Array(first.names), prefixes: Array(first.prefixes), for: self) { [self] error in
            if let error {
                environment.warn("what is posted while agents replace each other may start nothing: \(error)")
                kept = nil
                _ = subscriptions.remove(all)
            }
            completion()
        }
    }

    /// Leaves it to entries what the bus delivers, once each of them knows what it wants.
    func keepNothingIfAwake() {
        guard let all = kept, postponed == nil, !isLeaving, !launcher.hasWaking else { return }
        kept = nil
        let last = subscriptions.remove(all)
        receiver.unsubscribe(names: Array(last.names), prefixes: Array(last.prefixes), for: self)
    }
}
