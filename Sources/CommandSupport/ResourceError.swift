// SPDX-License-Identifier: Apache-2.0

import Glibc
package import NotifyCore

/// A resource that the kernel refused.
package struct ResourceError: Error {
    package let message: String

    init(_ what: String, _ number: Int32) {
        message = "cannot create \(what): \(Diagnostics.text(of: number))"
    }
}

extension WakeDescriptor {
    /// Creates the descriptor by which other threads wake the main thread.
    package static func ofCommand() throws(ResourceError) -> WakeDescriptor {
        do throws(NotifyBusError) {
            return try WakeDescriptor()
        } catch {
            throw ResourceError("an eventfd", error.errno ?? ENFILE)
        }
    }
}
