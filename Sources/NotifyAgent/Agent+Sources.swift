// SPDX-License-Identifier: Apache-2.0

import Glibc
import Logging
import NotifyCore

extension Agent {
    /// The name under which a desktop's own word is listed.
    static let shellSource = "shell"
    static let freezerSource = "freezer"

    /// How long sources go on when nobody observes any more, in nanoseconds.
    private static let lingering: Int64 = 10_000_000_000

    // MARK: - Starting and stopping

    /// Starts the sources with the first observer: without one there is nobody to decide about.
    func startSources() {
        guard running.isEmpty else { return }
        for maker in makers {
            guard maker.obstacle == nil else { continue }
            let source = maker.make(FactOutlet(maker.name, board))
            sources.reset(maker.name, nil)
            running.append(source)
            source.start()
        }
    }

    /// An observer has gone: if it was the last one, the sources rest soon.
    func mayRest() {
        if directory.connections.isEmpty, !running.isEmpty { watcher.rest(after: Agent.lingering) }
    }

    func restIfAlone() {
        guard directory.connections.isEmpty else { return }
        for source in running { source.stop() }
        running = []
        prepareSources()
    }

    func stopSources() {
        for source in running { source.stop() }
        running = []
    }

    /// Tells the sources of a process that observes, or that has moved to another cgroup.
    func present(_ process: ManagedProcess) {
        let observed = ObservedProcess(pid: process.pid, application: process.application, user: process.user)
        for source in running { source.observerHasCome(observed) }
    }

    private func prepareSources() {
        for maker in makers {
            sources.reset(maker.name, .off(maker.obstacle ?? "nobody observes; it starts with the first observer"))
        }
    }

    /// What can be said of the agent's own two sources before anything has happened.
    func prepareOwnSources() {
        prepareSources()
        sources.set(.off("no desktop has called SetForeground yet"), of: Agent.shellSource)
        sources.set(
            CgroupMount.unified == nil
                ? .off("cgroup version 2 is not mounted; a process stopped by a signal is noticed all the same")
                : .live,
            of: Agent.freezerSource
        )
    }

    /// Looks at what the sources have put on the board.
    func takeNews(_ link: borrowing BusLink) {
        let began = MonotonicClock.now
        let changes = sources.note(board.take())
        for (source, fact) in changes {
            logger.debug("\(fact.text)", metadata: ["source": "\(source)"])
            link.emit(AgentInterface.FactChanged(source: source, fact: fact.text))
        }
        reconsider(directory.connections.values, link)
        board.rest(after: MonotonicClock.now - began)
    }

    // MARK: - Programs that ask for it

    /// A program asks to follow the desktop, or no longer to.
    func followDesktop(_ call: BusCall, on link: borrowing BusLink) throws(BusFault) {
        guard let connection = directory[call.sender] else { throw .notRegistered }
        connection.followsDesktop = call.arguments[0].boolean ?? false
        link.reply(to: call)
        reconsider([connection], link)
    }

    // MARK: - The desktop's own word

    /// A desktop says which process has the focus, 0 for none.
    func setForeground(_ call: BusCall, on link: borrowing BusLink) throws(BusFault) {
        let pid = try process(in: call)
        guard sources.contains(Agent.shellSource) else {
            throw .accessDenied("The agent's configuration ignores the desktop's word.")
        }
        forOthers(call, on: link) { [self] user, link throws(BusFault) in
            guard Identity.permits(user, over: geteuid()) else {
                throw .accessDenied("Only user \(geteuid()) and root can say who has the focus, not user \(user).")
            }
            hearShell(call.sender, link)
            link.reply(to: call)
            board.post(Agent.shellSource, .live)
            board.post(Agent.shellSource, .focus(pid == 0 ? [] : [FocusedProcess(pid: pid)]))
        }
    }

    /// The number of a process. Scripts of KWin, whose language has one type of numbers, send i or d in place of u.
    private func process(in call: BusCall) throws(BusFault) -> pid_t {
        guard call.arguments.count == 1 else { try expect(call, "u"); return 0 }
        let number: pid_t? =
            switch call.arguments[0] {
            case .number(UInt8(ascii: "u"), let value): pid_t(exactly: value)
            case .number(UInt8(ascii: "i"), let value): pid_t(truncatingIfNeeded: value)
            case .double(let value): pid_t(exactly: value)
            default: nil
            }
        if number == nil, call.arguments[0].uint32 == nil { try expect(call, "u") }
        guard let number, number >= 0 else {
            throw .invalidArguments("A process is a number from 1 to 2147483647, or 0 for none.")
        }
        return number
    }

    /// What a desktop has said counts until it leaves the bus.
    private func hearShell(_ name: String, _ link: borrowing BusLink) {
        guard shell != name else { return }
        if let shell { link.callBus("RemoveMatch", [.string(Agent.leavingRule(of: shell))]) }
        shell = name
        link.callBus("AddMatch", [.string(Agent.leavingRule(of: name))])
        // It may have gone before the rule was there.
        link.callBus("NameHasOwner", [.string(name)]) { [self] answer, link in
            if case .success(let values) = answer, values.first?.boolean == false { shellHasLeft(name, link) }
        }
    }

    func shellHasLeft(_ name: String, _ link: borrowing BusLink) {
        guard shell == name else { return }
        shell = nil
        link.callBus("RemoveMatch", [.string(Agent.leavingRule(of: name))])
        board.post(Agent.shellSource, .off("the program that called SetForeground has left the bus"))
    }

    private static func leavingRule(of name: String) -> String {
        "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',"
            + "arg0='\(name)',arg2=''"
    }
}
