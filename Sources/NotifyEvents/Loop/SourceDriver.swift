// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// An external provider of state: a file of the kernel, a service, a desktop.
///
/// It lives on its loop's thread. External problems terminate nothing: it fails with a reason, and its driver starts it
/// again after a while.
package protocol Source: AnyObject {
    /// Determines and reports the current state, and follows its changes.
    func begin(on driver: SourceDriver) throws(SourceFault)
    /// Releases everything that `begin` has acquired. `begin` may follow.
    func end()
}

/// Why a source is not live.
package struct SourceFault: Error {
    package let reason: String
    /// Whether that may change later.
    package let isPassing: Bool

    package init(_ reason: String, isPassing: Bool = true) {
        self.reason = reason
        self.isPassing = isPassing
    }
}

/// Starts a source, and restarts it after a failure: after 250 ms, then at growing intervals up to 30 s.
package final class SourceDriver {
    package let loop: EventLoop
    package let source: any Source
    /// Called with the reason when the source is off, and with nil when it is live.
    private let report: (String?) -> Void
    private var backOff = BackOff(first: 250, last: 30_000)
    private var retry: Int?
    private var isBegun = false
    private var isEnded = false

    package init(_ source: any Source, on loop: EventLoop, report: @escaping (String?) -> Void) {
        self.source = source
        self.loop = loop
        self.report = report
    }

    package func begin() {
        guard !isEnded, !isBegun else { return }
        isBegun = true
        do throws(SourceFault) {
            try source.begin(on: self)
        } catch {
            fail(error)
        }
    }

    /// The source has reported its state: if it fails now, it is retried soon.
    package func isLive() {
        guard isBegun else { return }
        backOff.reset()
        report(nil)
    }

    /// Called by the source when it can't continue.
    package func fail(_ fault: SourceFault) {
        guard isBegun else { return }
        isBegun = false
        source.end()
        report(fault.reason)
        guard fault.isPassing, !isEnded else { return }
        retry = loop.after(backOff.next()) { [weak self] in self?.begin() }
    }

    package func end() {
        isEnded = true
        loop.cancel(retry)
        guard isBegun else { return }
        isBegun = false
        source.end()
    }
}
