// SPDX-License-Identifier: Apache-2.0

// The whole interface of this package is declared in this module. The implementation is in NotifyCore, which needs
// neither Dispatch nor Swift's concurrency library: the commands and the C library are built on it and carry neither.
// Each public type here holds the core's type of the same name, which can change without a change of the interface.
// This module adds what a Swift program expects on top: dispatch queues, tasks and asynchronous sequences.
package import NotifyCore

package typealias CoreCenter = NotifyCore.NotifyCenter
package typealias CoreName = NotifyCore.NotifyName
package typealias CoreError = NotifyCore.NotifyBusError

/// Runs something of the core, and throws its error as the public one.
func rethrowing<Value>(_ body: () throws(CoreError) -> Value) throws(NotifyBusError) -> Value {
    do throws(CoreError) {
        return try body()
    } catch {
        throw NotifyBusError(error)
    }
}
