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

    /// `<notify_keys.h>`.
    static var keysHeader: String {
        let entries = SystemEvent.all.compactMap { event in
            event.key.map { "/* \(event.meaning) */\n#define \($0) \"\(event.name)\"\n" }
        }
        return """
            /* SPDX-License-Identifier: Apache-2.0 */
            /*
             * notify_keys.h - names that are posted when something happens to the machine or the session
             *
             * notifybus-events(7) says which are posted when, and what their states say. On the system bus only root can post
             * those that begin with "com.apple.system." or "org.notifybus.system.".
             *
             * Made from the table of these names: notify-agent --generate keys.h
             */
            #ifndef NOTIFYBUS_NOTIFY_KEYS_H
            #define NOTIFYBUS_NOTIFY_KEYS_H

            \(entries.joined(separator: "\n"))
            #endif

            """
    }

    /// The same names for Swift.
    static var keysSource: String {
        let entries = SystemEvent.all.compactMap { event in
            event.key.map { "/// \(event.meaning)\npublic var \($0): String { \"\(event.name)\" }\n" }
        }
        return """
            // SPDX-License-Identifier: Apache-2.0

            // The names of those that Darwin has are Darwin's.
            // swift-format-ignore-file: AlwaysUseLowerCamelCase, LineLength

            // Names that are posted when something happens to the machine or the session: notifybus-events(7) says when, and what
            // their states say. Made from the table of these names: notify-agent --generate keys.swift

            \(entries.joined())
            """
    }

    var unpostedEvents: String {
        SystemEvent.all.filter { $0.source == nil }.map { tagged(bold($0.name.string), $0.meaning) }.joined()
    }
}
