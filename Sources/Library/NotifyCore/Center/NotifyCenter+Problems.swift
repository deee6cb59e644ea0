// SPDX-License-Identifier: Apache-2.0

import Synchronization

extension NotifyCenter {
    /// Sets what is called for a problem, on any thread and under the center's locks: it must not block, or call the center.
    /// Only the first call has an effect.
    package func onProblem(_ tell: @escaping @Sendable (CenterProblem) -> Void) {
        _ = engine.counters.problemHandler.storeIfNil(ProblemHandler(tell))
    }

    /// A post was refused.
    package func noteRefused(_ name: NotifyName, _ error: NotifyBusError) {
        engine.counters.problemHandler.load()?.tell(.refused(name, error))
    }
}
