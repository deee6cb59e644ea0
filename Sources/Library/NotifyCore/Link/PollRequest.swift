// SPDX-License-Identifier: Apache-2.0

package import Glibc

/// The events for which a connection is to be woken.
package struct PollRequest {
    package var descriptor: Int32 = -1
    var events: Int16 = 0
    package var deadline: MonotonicTime?
    /// Which of a center's connections this is for: another one may have replaced it by the time the leader wakes up.
    var connection = 0

    package var pollfd: Glibc.pollfd { Glibc.pollfd(fd: descriptor, events: events, revents: 0) }
}
