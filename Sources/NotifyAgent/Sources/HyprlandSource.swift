// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import NotifyCoordinator

/// The focus in Hyprland: its events say when to ask, and the answer names the process.
final class HyprlandSource: Source {
    private let folder: String
    private var events: Int32 = -1
    private var question: Int32 = -1
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
        events = linux_connect_unix(folder + "/.socket2.sock")
        guard events >= 0 else { throw .system("Hyprland can't be reached in \(folder)") }
        self.driver = driver
        driver.loop.watch(events) { [weak self] in self?.readEvents() }
        guard ask() else { throw SourceFault(HyprlandSource.gone) }
    }

    func end() {
        guard events >= 0 else { return }
        endQuestion()
        driver?.loop.forget(events)
        close(events)
        (events, driver, lines, mustAskAgain) = (-1, nil, LineSplitter(), false)
    }

    private static let gone = "Hyprland went away"
    private static let nonsense = "Hyprland sent something unintelligible"

    private func readEvents() {
        guard let bytes = SocketReading.some(of: events) else { return }
        guard !bytes.isEmpty, let complete = lines.take(bytes) else {
            driver?.fail(SourceFault(bytes.isEmpty ? HyprlandSource.gone : HyprlandSource.nonsense))
            return
        }
        guard complete.contains(where: HyprlandWire.concernsFocus) else { return }
        if question >= 0 {
            mustAskAgain = true
        } else if !ask() {
            driver?.fail(SourceFault(HyprlandSource.gone))
        }
    }

    // MARK: - Questions

    /// Each takes a connection of its own, which ends behind the answer.
    private func ask() -> Bool {
        let socket = linux_connect_unix(folder + "/.socket.sock")
        guard socket >= 0 else { return false }
        (question, answer, mustAskAgain) = (socket, [], false)
        driver?.loop.watch(socket) { [weak self] in self?.readAnswer() }
        let text = HyprlandWire.question
        return send(socket, text, text.count, Int32(MSG_NOSIGNAL)) == text.count
    }

    private func endQuestion() {
        guard question >= 0 else { return }
        driver?.loop.forget(question)
        close(question)
        question = -1
    }

    private func readAnswer() {
        guard let bytes = SocketReading.some(of: question) else { return }
        answer += bytes
        guard bytes.isEmpty else {
            if answer.count > 1_048_576 { driver?.fail(SourceFault(HyprlandSource.nonsense)) }
            return
        }
        endQuestion()
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
