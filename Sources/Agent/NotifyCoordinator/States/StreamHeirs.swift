// SPDX-License-Identifier: Apache-2.0

import NotifyNames

/// Connections that have replaced those whose streams are being read: their heirs.
struct StreamHeirs: Hashable {
    private var heirs: [ConnectionID: ConnectionID] = [:]
    /// The streams of each heir. It has several if it has replaced an heir.
    private var streams: [ConnectionID: Set<ConnectionID>] = [:]

    var isEmpty: Bool { heirs.isEmpty }
    func heir(of stream: ConnectionID) -> ConnectionID? { heirs[stream] }
    /// Whether the stream of a connection that this one has replaced is being read.
    func isHeir(_ id: ConnectionID) -> Bool { streams[id] != nil }

    mutating func set(_ heir: ConnectionID, of stream: ConnectionID) {
        heirs[stream] = heir
        streams[heir, default: []].insert(stream)
    }

    /// An heir is replaced itself.
    mutating func replace(_ heir: ConnectionID, by next: ConnectionID) {
        for stream in streams.removeValue(forKey: heir) ?? [] { set(next, of: stream) }
    }

    /// A stream is read no longer.
    ///
    /// - Returns: its heir.
    mutating func end(_ stream: ConnectionID) -> ConnectionID? {
        guard let heir = heirs.removeValue(forKey: stream) else { return nil }
        streams[heir]?.remove(stream)
        if streams[heir]?.isEmpty == true { streams[heir] = nil }
        return heir
    }
}
