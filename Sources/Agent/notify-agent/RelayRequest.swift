// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import NotifyCore

/// `notify-agent --relay`: asks the agent to open the relay for sandboxes. The bus runs it when a program wants the
/// relay's name: the agent that runs already does not hear of that by itself, and a name that it owned beforehand would
/// cost a connection on machines where it is not needed.
enum RelayRequest {
    private enum Event {
        case answer(BusAnswer)
        case lost(NotifyBusError)
    }

    private final class Peer: BusPeer {
        private let mailbox: Mailbox<Event>
        private weak var link: BusLink?
        /// When to ask the agent that may follow one which has left without an answer, and until when one may.
        private var retry = BackOff(first: 50, last: 500)
        private var limit: Deadline?

        init(_ mailbox: Mailbox<Event>) { self.mailbox = mailbox }

        var keepsConnection: Bool { false }

        var deadline: MonotonicTime? { retry.time }

        func linkIsReady(_ link: BusLink) {
            self.link = link
            ask()
        }

        func deadlineHasPassed() {
            guard let time = retry.time, time <= .now else { return }
            retry.cancel()
            ask()
        }

        private func ask() {
            link?.callAgent(AgentInterface.OpenRelay(), activates: true) { [self] answer in
                guard case .failure(let fault) = answer, fault.saysGone, !fault.isOfLostConnection else {
                    return mailbox.put(.answer(answer))
                }
                if limit == nil, !fault.saysUnknownService { limit = Deadline(after: Takeover.limit) }
                guard let limit, !limit.hasPassed else { return mailbox.put(.answer(answer)) }
                retry.schedule()
            }
        }

        func linkIsLost(_ error: NotifyBusError) { mailbox.put(.lost(error)) }
        func handle(_ call: BusCall) -> Bool { false }
        func handle(_ signal: BusSignal) { signal.arguments.closeDescriptors() }
    }

    /// As long as a bus waits for a name at the most.
    private static let timeLimit = Duration.seconds(25)

    static func run(_ settings: AgentSettings, _ diagnostics: Diagnostics) -> ExitCode {
        do {
            let mailbox = try Mailbox<Event>()
            let center = NotifyCenter(bus: settings.common.notifyBus, peer: Peer(mailbox))
            try center.open()
            defer { try? center.close(timeout: nil) }
            switch mailbox.next(until: Deadline(after: timeLimit)) {
            case .answer(.success): return .done
            case .answer(.failure(let fault)) where fault.saysForeignAgent:
                diagnostics.error("the lifecycle agent on this bus is not used: \(fault.message)")
                return .unavailable
            case .answer(.failure(let fault)):
                diagnostics.error("the agent did not open the relay: \(fault.message)")
                return fault.saysGone || fault.saysNotStarted ? .unavailable : .failed
            case .lost(let error): return diagnostics.fail(error)
            case nil:
                diagnostics.error("the agent did not open the relay in time")
                return .failed
            }
        } catch {
            return diagnostics.fail(error)
        }
    }
}
