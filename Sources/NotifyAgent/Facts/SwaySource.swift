// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import NotifyCoordinator
import NotifyCore

/// The focus in sway, and in other compositors that speak as it does: the events of its windows name the process.
final class SwaySource: LifecycleSource {
    private let path: String
    private let outlet: FactOutlet
    private let thread = SourceThread()

    init(path: String, _ outlet: FactOutlet) {
        self.path = path
        self.outlet = outlet
    }

    /// What speaks against it in this environment; nil if nothing does.
    static func obstacle(_ environment: [String: String]) -> String? {
        environment["SWAYSOCK"] == nil ? "$SWAYSOCK is not set" : nil
    }

    func start() {
        if !thread.start("sway", { self.run($0) }) { outlet.say(.off("no thread could be started")) }
    }

    func stop() {
        outlet.close()
        thread.stop()
    }

    private func run(_ thread: SourceThread) {
        var retry = BackOff.ofSource
        while !thread.isStopping {
            let socket = linux_connect_unix(path)
            if socket >= 0 {
                var talk = SwayTalk(socket: socket, outlet: outlet)
                let reason = talk.run(thread)
                close(socket)
                if talk.hasMadeSense { retry.reset() }
                outlet.say(.off(reason))
            } else {
                outlet.say(.off("sway can't be reached at $SWAYSOCK: \(String(cString: strerror(errno)))"))
            }
            if case .stopped = thread.wait(milliseconds: Int32(retry.next())) { return }
        }
    }
}

/// One connection to sway.
private struct SwayTalk {
    let socket: Int32
    let outlet: FactOutlet
    /// Whether it has told of the focus: then a new attempt can come soon.
    private(set) var hasMadeSense = false
    private var buffer: [UInt8] = []
    private var isWaitingForTree = false
    private var mustAskForTree = false

    init(socket: Int32, outlet: FactOutlet) {
        self.socket = socket
        self.outlet = outlet
    }

    /// Comes back when the connection is of no more use.
    ///
    /// - Returns: why.
    mutating func run(_ thread: SourceThread) -> String {
        let greeting = SwayWire.message(SwayWire.Kind.subscribe, #"["window","workspace"]"#)
        guard send(greeting), askForTree() else { return SwayTalk.gone }
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            guard case .ready = thread.wait(for: socket) else { return "stopped" }
            let count = read(socket, &chunk, chunk.count)
            if count < 0, errno == EAGAIN || errno == EINTR { continue }
            guard count > 0 else { return SwayTalk.gone }
            buffer += chunk[..<count]
            do throws(SwayWire.Fault) {
                while let message = try SwayWire.take(from: &buffer) {
                    if let reason = handle(message) { return reason }
                }
            } catch {
                return "what answers at $SWAYSOCK is not sway"
            }
        }
    }

    private static let gone = "sway went away"
    private static let nonsense = "sway says something that is not understood"

    /// - Returns: why the connection is to be given up, if it is.
    private mutating func handle(_ message: SwayWire.Message) -> String? {
        switch message.kind {
        case SwayWire.Kind.subscribe:
            return JSONValue(message.payload)?["success"]?.isTrue == true ? nil : "sway lets nobody follow its windows"
        case SwayWire.Kind.tree:
            guard isWaitingForTree, let tree = JSONValue(message.payload) else { return SwayTalk.nonsense }
            isWaitingForTree = false
            if mustAskForTree { return askForTree() ? nil : SwayTalk.gone }
            return say(SwayWire.focusedProcess(in: tree))
        case SwayWire.Kind.windowEvent:
            guard let event = JSONValue(message.payload), let change = event["change"]?.text,
                let container = event["container"]
            else { return SwayTalk.nonsense }
            if change == "focus" {
                // A tree that is under way is older than this.
                mustAskForTree = isWaitingForTree
                return say(SwayWire.process(of: container))
            }
            return change == "title" || change == "mark" || change == "urgent" ? nil : look()
        case SwayWire.Kind.workspaceEvent:
            // An empty workspace has the focus without an event of a window.
            return look()
        default: return nil
        }
    }

    private mutating func look() -> String? {
        if isWaitingForTree {
            mustAskForTree = true
            return nil
        }
        return askForTree() ? nil : SwayTalk.gone
    }

    private mutating func askForTree() -> Bool {
        isWaitingForTree = true
        mustAskForTree = false
        return send(SwayWire.message(SwayWire.Kind.tree))
    }

    private mutating func say(_ process: Int32?) -> String? {
        guard let process else { return "the compositor does not say which process a window belongs to" }
        hasMadeSense = true
        outlet.say(.live)
        outlet.say(.focus(process == 0 ? [] : [FocusedProcess(pid: process)]))
        return nil
    }

    /// These few bytes fit into the socket, or its other end does not read.
    private func send(_ bytes: [UInt8]) -> Bool {
        Glibc.send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
    }
}
