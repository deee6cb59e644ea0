// SPDX-License-Identifier: Apache-2.0

/// What Hyprland says on its two sockets: an event on each line of the one, and a JSON value for each question on the
/// other. See the page IPC of its wiki.
package enum HyprlandWire {
    package enum Answer: Equatable, Sendable {
        case window(DesktopWindow)
        case nobody
    }

    /// Asks for the window that has the focus.
    package static let question = Array("j/activewindow".utf8)

    /// Whether a line of the event socket, as in `activewindowv2>>55d1c7a3bd40`, may be about the window in front.
    package static func concernsFocus(_ line: [UInt8]) -> Bool {
        let name = String(decoding: line.prefix { $0 != UInt8(ascii: ">") }, as: UTF8.self)
        return ["activewindowv2", "closewindow", "fullscreen"].contains(name)
    }

    package static let keys: Set = ["pid", "class", "fullscreen"]

    /// The answer to the question.
    ///
    /// - Returns: nil if it is unintelligible.
    package static func answer(_ value: JSONValue?) -> Answer? {
        guard let value, case .object(let members) = value else { return nil }
        if members.isEmpty { return .nobody }
        guard let pid = value["pid"]?.integer else { return nil }
        // A window that is not mapped yet has no process.
        guard pid > 0 else { return .nobody }
        // A number for the kind of fullscreen, and in older versions a truth value.
        let mode = value["fullscreen"]
        let isFullscreen = mode?.isTrue == true || (mode?.integer ?? 0) >= 2
        return .window(DesktopWindow(pid: pid, application: value["class"]?.text ?? "", isFullscreen: isFullscreen))
    }
}
