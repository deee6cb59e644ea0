// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyNames

extension NotifyBusError {
    package static let closed = NotifyBusError(.closed, "The notification center was closed; create a new one.")

    package static let forked = NotifyBusError(
        .forked,
        "This process was forked from one that used the bus and can't use its connection; call exec, or fork earlier."
    )

    static func queueFull(_ name: NotifyName, _ count: Int) -> NotifyBusError {
        NotifyBusError(
            .queueFull,
            "The post of '\(name)' was rejected: \(count) names are already queued and the bus is not reading them; "
                + "call flush() before posting more."
        )
    }

    static let deadlock = NotifyBusError(
        .deadlock,
        "This callback waits for the end of another, which waits for the end of this one. Neither runs again, but the "
            + "other is still running; use cancel(), which does not wait."
    )

    static let stillRunning = NotifyBusError(
        .timedOut,
        "A callback did not end in time. It will not run again, but is still running."
    )

    static let noAgent = NotifyBusError(
        .noAgent,
        "There is no lifecycle agent on this bus; start notify-agent. Until then every program is in the foreground."
    )

    static let silentAgent = NotifyBusError(
        .noAgent,
        "The lifecycle agent did not answer; it may be stopped or overloaded."
    )

    /// There is none in a sandbox, where most often it is there.
    static let hiddenAgent = NotifyBusError(
        .noAgent,
        "This sandbox lets its program reach no lifecycle agent: it needs the permission "
            + "--talk-name=\(RelayInterface.name), and the machine needs NotifyBus."
    )

    static let disconnected = NotifyBusError(
        .disconnected,
        "Disconnected from the bus; the notification center keeps trying to reconnect, so try again later."
    )

    /// - Parameters:
    ///   - what: what could not be created, with its article: "an eventfd".
    ///   - code: the error number of the call that failed.
    package static func outOfDescriptors(_ what: String, _ code: Int32) -> NotifyBusError {
        NotifyBusError(.failed, "Cannot create \(what): \(describe(errno: code)).", errno: code)
    }

    package static func failed(_ sentence: String, _ code: Int32) -> NotifyBusError {
        NotifyBusError(.failed, sentence, errno: code)
    }
}
