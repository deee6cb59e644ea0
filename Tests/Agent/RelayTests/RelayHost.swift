// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import TestSupport
import Testing

@testable import NotifyAgent
@testable import NotifyCore

/// A relay on a thread of this process, for which the test is the agent.
final class RelayHost: Sendable {
    /// What lives on the thread.
    private final class Tenant: LoopTenant {
        let relay: Relay
        let link: BusLink

        init(_ relay: Relay, _ link: BusLink) { (self.relay, self.link) = (relay, link) }

        func loopHasEnded() { link.end() }
    }

    /// What it reports when it ends.
    struct Loss: Equatable, Sendable {
        let programs: [String]
        let isReplaced: Bool
    }

    let losses = Recorder<Loss>()
    let calls = Recorder<BusCall>()
    let replies = Recorder<Event.Reply>()
    private let thread: EventThread

    /// - Parameters:
    ///   - isHeld: whether the test takes each call by `answer`.
    ///   - process: where everyone who registers is said to be; all observe in the foreground.
    init(
        _ bus: PrivateBus,
        quotas: Quotas = Quotas(),
        isHeld: Bool = false,
        process: ProcessID? = RelayHost.somebody
    ) throws {
        thread = try EventThread(name: "relay")
        let opened = Recorder<Bool>()
        let address = bus.address
        thread.perform { [self] loop in
            let link = BusLink(bus: .address(address))
            let reporter = Relay.Reporter(
                opened: { opened.append($0 == nil) },
                call: { [self] call, _ in
                    calls.append(call)
                    if !isHeld { answer(call, process: process) }
                },
                told: { [replies] in replies.append($1) },
                hears: { _ in },
                lost: { [losses] in losses.append(Loss(programs: $0, isReplaced: $1)) }
            )
            let relay = Relay(link, reporter, quotas: quotas)
            link.peer = relay
            loop.tenant = Tenant(relay, link)
            loop.add(relay.receiver)
            link.open()
        }
        try #require(opened.wait(forCount: 1) && opened.elements == [true])
    }

    static let somebody = ProcessID(pid: 1, startTime: 1, user: geteuid())

    func answer(_ call: BusCall, process: ProcessID? = RelayHost.somebody) {
        let values: [BusValue] = call.member == "Register" ? [.string("foreground"), .strings([])] : []
        perform { relay in
            relay.answer(call, .success(values), process: process)
            relay.callIsTaken()
        }
    }

    func perform(_ work: @escaping @Sendable (Relay) -> Void) {
        thread.perform { loop in
            if let tenant = loop.tenant as? Tenant { work(tenant.relay) }
        }
    }

    func close() { thread.stop(waits: true) }
}
