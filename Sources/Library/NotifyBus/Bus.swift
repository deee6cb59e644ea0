// SPDX-License-Identifier: Apache-2.0

package import NotifyCore

extension NotifyCenter {
    /// Which bus a center uses. More kinds may be added.
    public struct Bus: Hashable, Sendable {
        package let core: CoreCenter.Bus

        package init(_ core: CoreCenter.Bus) { self.core = core }

        /// The session bus, as given by `DBUS_SESSION_BUS_ADDRESS`, or found at `$XDG_RUNTIME_DIR/bus`, or else at
        /// `/run/user/UID/bus`, if that belongs to the user.
        public static var session: Bus { Bus(.session) }
        /// The system bus, as given by `DBUS_SYSTEM_BUS_ADDRESS` or found at its standard address.
        public static var system: Bus { Bus(.system) }
        /// The bus at a D-Bus address, such as `unix:path=/run/user/1000/bus`.
        public static func address(_ address: String) -> Bus { Bus(.address(address)) }

        /// The D-Bus address to connect to, determined as the specification says under "Well-known Message Bus Instances".
        ///
        /// The environment is ignored in a program that runs with the rights of another user.
        ///
        /// - Throws: ``NotifyBusError`` with the code `noBus` if there is no session bus, or the bus is inside this process.
        public func resolveAddress() throws(NotifyBusError) -> String {
            try rethrowing { () throws(CoreError) in try core.resolveAddress() }
        }
    }
}

extension NotifyCenter.Bus {
    /// A bus inside this process, for tests: names stay in the process, and no daemon is needed.
    ///
    /// Centers with the same value meet, and no others, also for names that begin with `self.`. A center works as it does on
    /// a bus that answers at once: callbacks run on the center's thread or the queue, and `flush()` and `synchronize()`
    /// return immediately. There is no lifecycle agent, so every center is in the foreground.
    ///
    /// ```swift
    /// let bus = NotifyCenter.Bus.inProcess()
    /// let (server, client) = (NotifyCenter(bus: bus), NotifyCenter(bus: bus))
    /// ```
    public static func inProcess() -> NotifyCenter.Bus {
        NotifyCenter.Bus(.inProcess())
    }

    /// Makes a bus of `inProcess()` go away, as if it had ended: centers are disconnected, and what they post waits.
    ///
    /// For any other bus this is a programming error, and ends the program with a message.
    public func disconnect() { core.disconnect() }

    /// Makes a bus of `inProcess()` come back: centers are connected again, and posts made meanwhile are heard.
    ///
    /// For any other bus this is a programming error, and ends the program with a message.
    public func reconnect() { core.reconnect() }
}
