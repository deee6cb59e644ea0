// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import NotifyCoordinator

/// The focus in sway, and in other compositors that speak as it does: the events of its windows name the process.
final class SwaySource: Source {
    private let path: String
    private var socket: Int32 = -1
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
        socket = linux_connect_unix(path)
        guard socket >= 0 else { throw .system("sway can't be reached at $SWAYSOCK") }
        self.driver = driver
        driver.loop.watch(socket) { [weak self] in self?.read() }
        let greeting = SwayWire.message(SwayWire.Kind.subscribe, #"["window","workspace"]"#)
        guard send(greeting), askForTree() else { throw SourceFault(SwaySource.gone) }
    }

    func end() {
        guard socket >= 0 else { return }
        driver?.loop.forget(socket)
        close(socket)
        (socket, driver, buffer) = (-1, nil, [])
        (isWaitingForTree, mustAskForTree) = (false, false)
    }

    private func read() {
        guard let driver else { return }
        if let reason = takeMessages() { driver.fail(SourceFault(reason)) }
    }

    /// - Returns: why the connection is to be given up, if it is.
    private func takeMessages() -> String? {
        let size = 65_536
        var count = 0
        let chunk = [UInt8](unsafeUninitializedCapacity: size) { buffer, initialized in
            count = Glibc.read(socket, buffer.baseAddress, size)
            initialized = max(0, count)
        }
        if count < 0, errno == EAGAIN || errno == EINTR { return nil }
        guard count > 0 else { return SwaySource.gone }
        buffer += chunk
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
        return send(SwayWire.message(SwayWire.Kind.tree))
    }

    private func report(_ focus: SwayWire.Focus) -> String? {
        switch focus {
        case .unknown: return "the compositor does not report which process a window belongs to"
        case .nobody: driver?.reportFocus(nil)
        case .window(let window): driver?.reportFocus(window)
        }
        return nil
    }

    /// These few bytes fit into the socket, or its other end does not read.
    private func send(_ bytes: [UInt8]) -> Bool {
        Glibc.send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
    }
}
