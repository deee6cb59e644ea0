// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// The focus in sway, and in other compositors that speak as it does: the events of its windows name the process.
final class SwaySource: Source {
    private let path: String
    private let limit: Int64
    private var stream: SocketStream?
    private weak var driver: SourceDriver?
    private var reader = SwayReader()
    /// What has the focus, and how often that has changed, since it was reported.
    private var news: (window: DesktopWindow?, count: UInt64)?
    private var trees: PacedQuestion?
    /// Whether a window has told since the tree was asked for that it has the focus.
    private var isTreeOutdated = false

    /// - Parameter limit: how long sway may take to answer, in milliseconds.
    init(path: String, limit: Int64 = BusLink.usualAnswerLimit) { (self.path, self.limit) = (path, limit) }

    /// Why this source can't be used in this environment; nil if it can.
    static func obstacle(_ environment: [String: String]) -> String? {
        environment["SWAYSOCK"] == nil ? "$SWAYSOCK is not set" : nil
    }

    func begin(on driver: SourceDriver) throws(SourceFault) {
        stream = SocketStream(
            path,
            on: driver.loop,
            limit: limit,
            isSilent: { [weak self, limit] in self?.driver?.fail(.silence("sway", $0, limit)) },
            { [weak self] bytes in
                if let reason = self?.take(bytes) { self?.driver?.fail(SourceFault(reason)) }
            }
        )
        guard let stream else { throw .system("sway can't be reached at $SWAYSOCK") }
        self.driver = driver
        let greeting = SwayWire.message(SwayWire.Kind.subscribe, #"["window","workspace"]"#)
        guard stream.ask(greeting, "SUBSCRIBE") else { throw SourceFault(SwaySource.gone) }
        trees = PacedQuestion(on: driver.loop) { [weak self] in self?.askForTree() }
        trees?.want()
    }

    func end() {
        (stream, driver, reader, news) = (nil, nil, SwayReader(), nil)
        (trees, isTreeOutdated) = (nil, false)
    }

    /// - Returns: why the connection is to be given up, if it is.
    private func take(_ bytes: [UInt8]) -> String? {
        if bytes.isEmpty { return SwaySource.gone }
        guard let messages = try? reader.take(bytes) else { return "what answers at $SWAYSOCK is not sway" }
        var reason: String?
        for message in messages where reason == nil { reason = handle(message) }
        // Whose window that is takes time to find out.
        if let news { driver?.reportFocus(news.window, count: news.count) }
        news = nil
        return reason
    }

    private static let gone = "sway went away"
    private static let nonsense = "sway sent something unintelligible"

    /// - Returns: why the connection is to be given up, if it is.
    private func handle(_ message: SwayWire.Message) -> String? {
        switch message.kind {
        case SwayWire.Kind.subscribe:
            guard stream?.isAnswered("SUBSCRIBE") == true else { return SwaySource.nonsense }
            return message.payload?["success"]?.isTrue == true
                ? nil : "sway refused the subscription to its windows"
        case SwayWire.Kind.tree:
            guard stream?.isAnswered("GET_TREE") == true, let tree = message.payload else {
                return SwaySource.nonsense
            }
            let isOutdated = isTreeOutdated
            trees?.isAnswered()
            return isOutdated ? nil : report(SwayWire.focusedWindow(in: tree))
        case SwayWire.Kind.windowEvent:
            guard let event = message.payload, let change = event["change"]?.text,
                let container = event["container"]
            else { return SwaySource.nonsense }
            if change == "focus" {
                // A tree that is under way is older than this.
                isTreeOutdated = true
                return report(SwayWire.window(of: container))
            }
            if change != "title", change != "mark", change != "urgent" { trees?.want() }
            return nil
        case SwayWire.Kind.workspaceEvent:
            // An empty workspace has the focus without an event of a window.
            trees?.want()
            return nil
        default: return nil
        }
    }

    private func askForTree() {
        isTreeOutdated = false
        if stream?.ask(SwayWire.message(SwayWire.Kind.tree), "GET_TREE") != true {
            driver?.fail(SourceFault(SwaySource.gone))
        }
    }

    private func report(_ focus: SwayWire.Focus) -> String? {
        let count = (news?.count ?? 0) + 1
        switch focus {
        case .unknown: return "the compositor does not report which process a window belongs to"
        case .nobody: news = (nil, count)
        case .window(let window): news = (window, count)
        }
        return nil
    }
}
