// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// Something outside that tells what is the case: a file of the kernel, a service, a desktop.
///
/// It lives on the thread of its loop. What goes wrong outside ends nothing: it fails with a reason, and its driver begins
/// again after a while.
package protocol Source: AnyObject {
    /// Looks what is the case, says it, and follows what becomes of it.
    func begin(on driver: SourceDriver) throws(SourceFault)
    /// Lets go of everything that `begin` has taken. `begin` may follow.
    func end()
}

/// Why a source is not live.
package struct SourceFault: Error {
    package let reason: String
    /// Whether it may be otherwise later.
    package let isPassing: Bool

    package init(_ reason: String, isPassing: Bool = true) {
        self.reason = reason
        self.isPassing = isPassing
    }
}

/// Begins a source, and begins it again when it has failed: after 250 ms, then less and less often, at last each 30 s.
package final class SourceDriver {
    package let loop: EventLoop
    package let source: any Source
    /// Is told the reason when the source is off, and nil when it is live.
    private let say: (String?) -> Void
    private var backOff = BackOff(first: 250, last: 30_000)
    private var retry: Int?
    private var isBegun = false
    private var isEnded = false

    package init(_ source: any Source, on loop: EventLoop, say: @escaping (String?) -> Void) {
        self.source = source
        self.loop = loop
        self.say = say
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

    /// The source has said what is the case: when it fails now, it is tried again soon.
    package func isLive() {
        guard isBegun else { return }
        backOff.reset()
        say(nil)
    }

    /// To be called by the source when it can't go on.
    package func fail(_ fault: SourceFault) {
        guard isBegun else { return }
        isBegun = false
        source.end()
        say(fault.reason)
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
