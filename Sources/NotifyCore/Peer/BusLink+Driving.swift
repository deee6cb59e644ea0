// SPDX-License-Identifier: Apache-2.0

// A connection that an event loop drives instead of a center's threads. It has no observers but its peer and its listener.
extension BusLink {
    /// How long what has come is handled before others get their turn, in milliseconds.
    private static let slice: Int64 = 2

    /// Connects. The peer learns what becomes of it, possibly before this returns.
    package func open() { run([.open]) }

    /// What to sleep for.
    package var pollRequest: PollRequest {
        var request = serviceRequest
        // What has been read and not handled poll(2) can't know.
        if isBehind { (request.events, request.deadline) = (0, MonotonicTime(nanoseconds: 0)) }
        return request
    }

    /// Reads what has come, and handles it for a while.
    package func proceed(_ events: Int16) {
        batchStart = .now
        service(events)
        isBehind = false
        // From here on, so that something is read each time, whatever the peer has done just now.
        let end = MonotonicTime.now + BusLink.slice
        sliceEnd = end
        defer { sliceEnd = nil }
        while let arrival = nextArrival() {
            for observer in arrival.audience.observers { observer.offer(arrival.name) }
            if .now >= end {
                isBehind = true
                return
            }
        }
    }

    /// Closes the connection, and lets go of the peer.
    package func end() {
        close()
        peer = nil
    }
}
