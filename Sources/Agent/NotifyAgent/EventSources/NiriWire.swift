// SPDX-License-Identifier: Apache-2.0

/// A window, as a desktop describes it.
package struct DesktopWindow: Equatable, Sendable {
    /// 0 if the desktop does not know it.
    package let pid: Int32
    package let application: String
    package let isFullscreen: Bool

    package init(pid: Int32, application: String, isFullscreen: Bool = false) {
        (self.pid, self.application, self.isFullscreen) = (pid, application, isFullscreen)
    }
}

/// The events of niri's interprocess communication: a JSON value on each line. See niri(1) and the crate niri-ipc.
package struct NiriWire {
    package enum Fault: Error, Equatable {
        case refused
        case unintelligible
    }

    /// Asks for the event stream, which begins with what is there.
    package static let request = Array("\"EventStream\"\n".utf8)

    /// More than anybody has.
    private static let maximumWindows = 4_096
    private static let keys: Set = [
        "WindowsChanged", "windows", "WindowOpenedOrChanged", "window", "WindowClosed", "WindowFocusChanged",
        "id", "pid", "app_id", "is_focused",
    ]

    private var line = JSONReader(keeping: keys)
    private var windows: [Double: DesktopWindow] = [:]
    private var focused: Double?
    private var hasBegun = false
    /// Whether it has said which windows there are.
    package private(set) var hasWindows = false

    package init() {}

    /// The focused window; nil if none is.
    package var window: DesktopWindow? { focused.flatMap { windows[$0] } }

    /// Takes in what has come.
    ///
    /// - Returns: whether it may be about the focus.
    package mutating func take(_ bytes: [UInt8]) throws(Fault) -> Bool {
        var (rest, mayHaveMoved) = (bytes[...], false)
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            guard line.take(rest[..<end]), let value = line.finish() else { throw .unintelligible }
            line = JSONReader(keeping: NiriWire.keys)
            if try take(value) { mayHaveMoved = true }
            rest = rest[(end + 1)...]
        }
        guard line.take(rest) else { throw .unintelligible }
        return mayHaveMoved
    }

    private mutating func take(_ value: JSONValue) throws(Fault) -> Bool {
        guard case .object(let members) = value else { throw .unintelligible }
        guard hasBegun else {
            if value["Err"] != nil { throw .refused }
            guard value["Ok"] != nil else { throw .unintelligible }
            hasBegun = true
            return false
        }
        guard let (kind, event) = members.first, members.count == 1 else { throw .unintelligible }
        switch kind {
        case "WindowsChanged":
            guard case .array(let all)? = event["windows"] else { throw .unintelligible }
            (windows, focused, hasWindows) = ([:], nil, true)
            for window in all { try enter(window) }
        case "WindowOpenedOrChanged":
            guard let window = event["window"] else { throw .unintelligible }
            try enter(window)
        case "WindowClosed":
            guard let id = event["id"]?.number else { throw .unintelligible }
            windows[id] = nil
            if focused == id { focused = nil }
        case "WindowFocusChanged":
            guard let id = event["id"] else { throw .unintelligible }
            focused = id.number
        default: return false
        }
        return true
    }

    private mutating func enter(_ window: JSONValue) throws(Fault) {
        guard let id = window["id"]?.number, windows.count < NiriWire.maximumWindows else { throw .unintelligible }
        windows[id] = DesktopWindow(
            pid: window["pid"]?.integer.flatMap { $0 > 0 ? $0 : nil } ?? 0,
            application: window["app_id"]?.text ?? ""
        )
        if window["is_focused"]?.isTrue == true {
            focused = id
        } else if focused == id {
            focused = nil
        }
    }
}
