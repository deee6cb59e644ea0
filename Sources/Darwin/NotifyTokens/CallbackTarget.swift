// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// A C function that is called on the center's thread, one at a time with all other callbacks of the center.
package final class CallbackTarget: Sendable {
    /// `@unchecked Sendable`: the context is only passed on; what the function may do with it there is up to the program.
    package struct Function: @unchecked Sendable {
        let call: @convention(c) (Int32, UnsafeMutableRawPointer?) -> Void
        let context: UnsafeMutableRawPointer?

        package init(
            _ call: @escaping @convention(c) (Int32, UnsafeMutableRawPointer?) -> Void,
            _ context: UnsafeMutableRawPointer?
        ) {
            (self.call, self.context) = (call, context)
        }
    }

    private let function: Function
    /// Sees to it that nothing is called once the token is cancelled.
    private let observation: NotifyCenter.Observation

    /// Starts the threads of the center: the calls need one, even where the bus is not needed.
    init(_ function: Function, on center: NotifyCenter) throws(NotifyStatus) {
        self.function = function
        do throws(NotifyBusError) {
            observation = try center.observeNothing()
        } catch {
            throw NotifyStatus(error)
        }
    }

    func schedule(_ registration: Registration) {
        observation.enqueue { [function] in
            registration.run { function.call(registration.token, function.context) }
        }
    }

    /// Prevents further calls, and waits for one that is running in another thread, unless that waits for this one.
    func end() {
        try? observation.cancelAndWait(timeout: nil)
    }
}
