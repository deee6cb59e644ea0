// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore
import NotifyNames

// What programs behind the relay hear, and the calls by which they hear it.
extension Relay {
    // MARK: - Calls to programs

    /// Makes a call when it is its turn: a bus lets a connection wait for a limited number of replies.
    func enqueue(_ call: ProgramCall, _ state: LifecycleState, to name: String) {
        guard let process = table.process(of: name) else {
            if case .state = call { reporter.told(name, .gone) }
            return
        }
        window.enqueue(call, state, of: Owner(process, agentUser: geteuid()))
        callPrograms()
    }

    func callPrograms() {
        while let (call, state) = window.next(now: MonotonicTime.now.nanoseconds) {
            switch call {
            case .state(let name): setState(state, of: name)
            case .posts(let name): deliver(to: name)
            }
        }
        giveMemoryBack()
    }

    /// Memory that waiting posts have taken up is kept no longer than it is needed.
    private func giveMemoryBack() {
        guard table.hasShrunk else { return }
        table.memoryIsGivenBack()
        receiver.giveMemoryBack()
    }

    // MARK: - Posts

    func handle(post name: NotifyName, from sender: String) {
        guard SystemEvent.reachesSandboxes(name) else { return }
        table.posted(RelayTable.Post(name, from: sender))
        if MonotonicTime.now.nanoseconds - link.batchStart.nanoseconds < Relay.slice { takeStep() }
    }

    /// Passes on names that the agent has heard for a program.
    func keep(_ found: [NotifyName], for name: String) {
        follow(name) { [self] in
            table.keep(found.filter(SystemEvent.reachesSandboxes), for: name)
            pass(to: name)
        }
    }

    /// Does this when all posts so far are queued for a program.
    func follow(_ name: String, _ work: @escaping () -> Void) {
        lastFollower += 1
        guard table.follow(lastFollower, for: name) else { return work() }
        followers[lastFollower] = work
    }

    /// Queues posts for the programs that are to hear them, and does the work that has followed these, for a while.
    func takeSteps() {
        let end = MonotonicTime.now.nanoseconds + Relay.slice
        while takeStep(), MonotonicTime.now.nanoseconds < end {}
    }

    /// - Returns: false if there is nothing to do.
    @discardableResult
    private func takeStep() -> Bool {
        switch table.next() {
        case nil: return false
        case .queued(let names): for name in names { pass(to: name) }
        case .follower(let number): followers.removeValue(forKey: number)?()
        }
        return true
    }

    /// Passes on what is waiting, unless the program has yet to read the last batch.
    func pass(to name: String) {
        guard table.hasBatch(for: name), !refusing.contains(name) else { return }
        enqueue(.posts(name), .foreground, to: name)
    }

    private func deliver(to name: String) {
        guard let posts = table.takeBatch(for: name, limit: ObserverInterface.DeliverPosts.limit) else {
            return window.hasAnswered(.posts(name))
        }
        let message = ObserverInterface.DeliverPosts(names: posts.map(\.name.string), senders: posts.map(\.sender))
        link.call(message, ofObserver: name) { [self] answer in
            window.hasAnswered(.posts(name))
            switch answer {
            case .success(let values):
                values.closeDescriptors()
                endWaits(table.batchIsRead(by: name))
                pass(to: name)
            case .failure:
                // The program has gone, or can't take anything now.
                table.batchWasRefused(by: name)
                refusing.insert(name)
                retryTime = retryTime ?? .now + 1_000
            }
            callPrograms()
        }
    }
}
