// SPDX-License-Identifier: Apache-2.0

import NotifyNames

/// What notifybus-events(7) says of each name that the agent posts, from the table of them.
extension ManualSections {
    var events: String {
        SystemEvent.all.map { event in
            guard let source = event.source else { return "" }
            let state = event.state.isEmpty ? "" : " Its state is \(event.state)."
            return tagged(bold(event.name.string), "\(event.meaning)\(state) The source is \(source.rawValue).")
        }.joined()
    }

    var unpostedEvents: String {
        SystemEvent.all.filter { $0.source == nil }.map { tagged(bold($0.name.string), $0.meaning) }.joined()
    }
}
