// SPDX-License-Identifier: Apache-2.0

import NotifyNames

/// The descriptions in notifybus-events(7), generated from the table of names that the agent posts.
extension ManualSections {
    var events: String {
        SystemEvent.all.map { event in
            guard let source = event.source else { return "" }
            let state = event.state.isEmpty ? "" : " Its state is \(event.state)."
            return tagged(bold(event.name.string), "\(event.meaning)\(state) Source: \(source.rawValue).")
        }.joined()
    }

    /// `<notify_keys.h>`.
    static var keysHeader: String {
        let entries = SystemEvent.all.compactMap { event in
            event.key.map { "/* \(event.meaning) */\n#define \($0) \"\(event.name)\"\n" }
        }
        return """
            /* SPDX-License-Identifier: Apache-2.0 */
            /*
             * notify_keys.h - names posted when something happens to the machine or the session
             *
             * See notifybus-events(7) for when each is posted and what its state means. On the system bus only root can post
             * those that begin with "com.apple.system." or "org.notifybus.system.".
             *
             * Generated from the table of these names: notify-agent --generate keys.h
             */
            #ifndef NOTIFYBUS_NOTIFY_KEYS_H
            #define NOTIFYBUS_NOTIFY_KEYS_H

            \(entries.joined(separator: "\n"))
            #endif

            """
    }

    var unpostedEvents: String {
        SystemEvent.all.filter { $0.source == nil }.map { tagged(bold($0.name.string), $0.meaning) }.joined()
    }
}
