// SPDX-License-Identifier: Apache-2.0

/// The focus in sway, and in other compositors that speak as it does: the events of its windows name the process.
final class SwaySource: Source {
    private let path: String
    private var stream: SocketStream?
    private weak var driver: SourceDriver?
    private var buffer: [UInt8] = []
    private var isWaitingForTree = false
    private var mustAskForTree = false

    init(path: String) { self.path = path }

    /// What speaks against it in this environment; nil if nothing does.
    static func obstacle(_ environment: [String: String]) -> String? {
        environment["SWAYSOCK"] == nil ? "$SWAYSOCK is not set" : nil
    }

    func begin(on driver: SourceDriver) throws(SourceFault) {
        stream = SocketStream(path, on: driver.loop) { [weak self] bytes in
            if let reason = self?.take(bytes) { self?.driver?.fail(SourceFault(reason)) }
        }
        guard let stream else { throw .system("sway can't be reached at $SWAYSOCK") }
        self.driver = driver
        let greeting = SwayWire.message(SwayWire.Kind.subscribe, #"["window","workspace"]"#)
        guard stream.send(greeting), askForTree() else { throw SourceFault(SwaySource.gone) }
    }

    func end() {
        (stream, driver, buffer) = (nil, nil, [])
        (isWaitingForTree, mustAskForTree) = (false, false)
    }

    /// - Returns: why the connection is to be given up, if it is.
    private func take(_ bytes: [UInt8]) -> String? {
        if bytes.isEmpty { return SwaySource.gone }
        buffer += bytes
        do throws(SwayWire.Fault) {
            while let message = try SwayWire.take(from: &buffer) {
                if let reason = handle(message) { return reason }
            }
        } catch {
            return "what answers at $SWAYSOCK is not sway"
        }
        return nil
    }

    private static let gone = "sway went away"
    private static let nonsense = "sway sent something unintelligible"

    /// - Returns: why the connection is to be given up, if it is.
    private func handle(_ message: SwayWire.Message) -> String? {
        switch message.kind {
        case SwayWire.Kind.subscribe:
            return JSONValue(message.payload)?["success"]?.isTrue == true
                ? nil : "sway refused the subscription to its windows"
        case SwayWire.Kind.tree:
            guard isWaitingForTree, let tree = JSONValue(message.payload) else { return SwaySource.nonsense }
            isWaitingForTree = false
            if mustAskForTree { return askForTree() ? nil : SwaySource.gone }
            return report(SwayWire.focusedWindow(in: tree))
        case SwayWire.Kind.windowEvent:
            guard let event = JSONValue(message.payload), let change = event["change"]?.text,
                let container = event["container"]
            else { return SwaySource.nonsense }
            if change == "focus" {
                // A tree that is under way is older than this.
                mustAskForTree = isWaitingForTree
                return report(SwayWire.window(of: container))
            }
            return change == "title" || change == "mark" || change == "urgent" ? nil : look()
        case SwayWire.Kind.workspaceEvent:
            // An empty workspace has the focus without an event of a window.
            return look()
        default: return nil
        }
    }

    private func look() -> String? {
        if isWaitingForTree {
            mustAskForTree = true
            return nil
        }
        return askForTree() ? nil : SwaySource.gone
    }

    private func askForTree() -> Bool {
        isWaitingForTree = true
        mustAskForTree = false
        return stream?.send(SwayWire.message(SwayWire.Kind.tree)) == true
    }

    private func report(_ focus: SwayWire.Focus) -> String? {
        switch focus {
        case .unknown: return "the compositor does not report which process a window belongs to"
        case .nobody: driver?.reportFocus(nil)
        case .window(let window): driver?.reportFocus(window)
        }
        return nil
    }
}
