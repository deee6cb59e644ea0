// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The focus in Hyprland: its events say when to ask, and the answer names the process.
final class HyprlandSource: Source {
    private let folder: String
    private var events: SocketStream?
    private var question: SocketStream?
    private var answer: [UInt8] = []
    /// Whether something has happened since the question.
    private var mustAskAgain = false
    private weak var driver: SourceDriver?
    private var lines = LineSplitter()

    init(folder: String) { self.folder = folder }

    /// Where its sockets are; nil if the environment does not say.
    static func folder(_ environment: [String: String]) -> String? {
        guard let instance = environment["HYPRLAND_INSTANCE_SIGNATURE"], !instance.utf8.contains(UInt8(ascii: "/"))
        else { return nil }
        let places = [environment["XDG_RUNTIME_DIR"].map { $0 + "/hypr/" }, "/tmp/hypr/"].compactMap { $0 }
        // Versions before 0.40 have them in /tmp.
        return (places.first { access($0 + instance, F_OK) == 0 } ?? places.first).map { $0 + instance }
    }

    /// What speaks against it in this environment; nil if nothing does.
    static func obstacle(_ environment: [String: String]) -> String? {
        environment["HYPRLAND_INSTANCE_SIGNATURE"] == nil ? "$HYPRLAND_INSTANCE_SIGNATURE is not set" : nil
    }

    func begin(on driver: SourceDriver) throws(SourceFault) {
        events = SocketStream(folder + "/.socket2.sock", on: driver.loop) { [weak self] bytes in self?.takeEvents(bytes)
        }
        guard events != nil else { throw .system("Hyprland can't be reached in \(folder)") }
        self.driver = driver
        guard ask() else { throw SourceFault(HyprlandSource.gone) }
    }

    func end() { (events, question, driver, lines, mustAskAgain) = (nil, nil, nil, LineSplitter(), false) }

    private static let gone = "Hyprland went away"
    private static let nonsense = "Hyprland sent something unintelligible"

    private func takeEvents(_ bytes: [UInt8]) {
        guard !bytes.isEmpty, let complete = lines.take(bytes) else {
            driver?.fail(SourceFault(bytes.isEmpty ? HyprlandSource.gone : HyprlandSource.nonsense))
            return
        }
        guard complete.contains(where: HyprlandWire.concernsFocus) else { return }
        if question != nil {
            mustAskAgain = true
        } else if !ask() {
            driver?.fail(SourceFault(HyprlandSource.gone))
        }
    }

    // MARK: - Questions

    /// Each takes a connection of its own, which ends behind the answer.
    private func ask() -> Bool {
        guard let driver else { return false }
        (answer, mustAskAgain) = ([], false)
        question = SocketStream(folder + "/.socket.sock", on: driver.loop) { [weak self] bytes in
            self?.takeAnswer(bytes)
        }
        return question?.send(HyprlandWire.question) == true
    }

    private func takeAnswer(_ bytes: [UInt8]) {
        answer += bytes
        guard bytes.isEmpty else {
            if answer.count > 1_048_576 { driver?.fail(SourceFault(HyprlandSource.nonsense)) }
            return
        }
        question = nil
        // What was asked before the last event is out of date.
        if mustAskAgain {
            if !ask() { driver?.fail(SourceFault(HyprlandSource.gone)) }
            return
        }
        switch HyprlandWire.answer(answer) {
        case nil: driver?.fail(SourceFault(HyprlandSource.nonsense))
        case .nobody?: driver?.reportFocus(nil)
        case .window(let window)?: driver?.reportFocus(window)
        }
    }
}
