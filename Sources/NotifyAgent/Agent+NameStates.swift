// SPDX-License-Identifier: Apache-2.0

import NotifyCore

extension Agent {
    func setNameState(_ call: BusCall, on link: borrowing BusLink) throws(BusFault) {
        let name = try stateName(in: call)
        let value = call.arguments[1].uint64 ?? 0
        link.findUser(of: call.sender) { [self] user, link in
            guard let user = try? user.get() else { return }
            guard maySetState(of: name, user) else {
                return link.refuse(call, .accessDenied("Only its owner and root can set the state of '\(name)'."))
            }
            guard directory.isObserved(name) else { return link.refuse(call, .notObserved(name)) }
            link.reply(to: call, [.uint64(nameStates.set(value, of: name, now: Agent.now))])
        }
    }

    func getNameState(_ call: BusCall, on link: borrowing BusLink) throws(BusFault) {
        link.reply(to: call, [.uint64(nameStates[try stateName(in: call)])])
    }

    private func stateName(in call: BusCall) throws(BusFault) -> NotifyName {
        do throws(NotifyBusError) {
            return try NotifyName(call.arguments[0].string ?? "")
        } catch {
            throw .invalidArguments(error.description)
        }
    }

    /// The same right as to post the name.
    private func maySetState(of name: NotifyName, _ user: UInt32) -> Bool {
        user == 0 || name.isOpen(to: user) && !(bus == .system && name.isReserved)
    }

    /// Takes over what a connection had set under an agent before this one.
    func restoreStates(_ registration: Registration, user: UInt32) {
        for (name, entry) in registration.states
        where registration.subjects.names.contains(name) && maySetState(of: name, user) {
            nameStates.restore(entry, of: name, now: Agent.now)
        }
    }

    /// To be called when these names are observed by one connection less.
    func forgetStates(of names: Set<NotifyName>) {
        nameStates.forget(names) { directory.isObserved($0) }
    }

    private static var now: UInt64 { UInt64(max(0, MonotonicClock.now)) }
}
