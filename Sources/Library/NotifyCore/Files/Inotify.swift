// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyWire

/// An inotify instance: which files and directories it watches, and what has happened to them. See inotify(7).
///
/// What that means is left to its users: ``FileMonitors`` follows paths, and a source the attributes of directories.
package final class Inotify: Sendable {
    /// Something that has happened.
    package struct Event {
        /// The number of the watch; -1 for an overflow.
        package let watch: Int32
        private let mask: UInt32
        /// The entry of the watched directory to which it has happened; empty if it is the directory itself.
        package let name: [UInt8]

        fileprivate init(watch: Int32, mask: UInt32, name: [UInt8]) {
            (self.watch, self.mask, self.name) = (watch, mask, name)
        }

        /// Whether it is one of these.
        package func isAny(of kinds: Int32) -> Bool { mask & UInt32(bitPattern: kinds) != 0 }

        /// Whether the kernel has dropped events.
        package var isOverflow: Bool { isAny(of: IN_Q_OVERFLOW) }
    }

    /// How many bytes of events are read at once: about 500 events.
    private static let batchSize = 16_384

    /// Readable when something has happened.
    package var descriptor: Int32 { own.number }
    private let own: OwnDescriptor

    /// - Throws: `failed` if no inotify instance is available.
    package init() throws(NotifyBusError) {
        let descriptor = inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK))
        if descriptor < 0 {
            let code = errno
            throw code == EMFILE && Inotify.hasDescriptors
                ? .failed("there are no more inotify instances; see fs.inotify.max_user_instances", code)
                : .outOfDescriptors("an inotify instance", code)
        }
        own = OwnDescriptor(descriptor)
    }

    /// Whether the program may open another descriptor: the error is the same for both limits.
    private static var hasDescriptors: Bool {
        let descriptor = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
        if descriptor >= 0 { close(descriptor) }
        return descriptor >= 0 || errno != EMFILE
    }

    deinit { own.close() }

    /// Whether the program has not closed it.
    package var isOurs: Bool { own.isOurs }

    /// Watches a file or directory for events of these kinds. There is one watch for each, whatever its path.
    ///
    /// - Returns: its number, or -1 with the reason in `errno`.
    package func add(_ path: String, _ kinds: Int32) -> Int32 {
        inotify_add_watch(descriptor, path, UInt32(bitPattern: kinds))
    }

    package func remove(_ watch: Int32) { inotify_rm_watch(descriptor, watch) }

    /// Reads some of what has happened. If there is more, the descriptor is still readable.
    package func read() -> [Event] {
        withUnsafeTemporaryAllocation(byteCount: Inotify.batchSize, alignment: 8) { buffer in
            let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
            var events: [Event] = []
            var rest = UnsafeRawBufferPointer(rebasing: buffer[..<max(0, count)])
            let header = MemoryLayout<inotify_event>.size
            while rest.count >= header {
                let event = rest.loadUnaligned(as: inotify_event.self)
                let end = min(rest.count, header + Int(event.len))
                let name = Array(rest[header..<end].prefix { $0 != 0 })
                events.append(Event(watch: event.wd, mask: event.mask, name: name))
                rest = UnsafeRawBufferPointer(rebasing: rest[end...])
            }
            return events
        }
    }
}
