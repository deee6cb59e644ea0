// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore

/// The focus in Hyprland: its events say when to ask, and the answer names the process.
final class HyprlandSource: Source {
    private let folder: String
    private let limit: Int64
    private var events: SocketStream?
    private var questions: PacedQuestion?
    private var question: SocketStream?
    private var answer = JSONReader(keeping: HyprlandWire.keys)
    private weak var driver: SourceDriver?
    /// The beginning of the last line.
    private var line: [UInt8] = []

    /// - Parameter limit: how long Hyprland may take to answer, in milliseconds.
    init(folder: String, limit: Int64 = BusLink.usualAnswerLimit) { (self.folder, self.limit) = (folder, limit) }

    /// Where its sockets are; nil if the environment does not say.
    static func folder(_ environment: [String: String]) -> String? {
        guard let instance = environment["HYPRLAND_INSTANCE_SIGNATURE"], !instance.utf8.contains(UInt8(ascii: "/"))
        else { return nil }
        let places = [environment["XDG_RUNTIME_DIR"].map { $0 + "/hypr/" }, "/tmp/hypr/"].compactMap { $0 }
        // Versions before 0.40 have them in /tmp.
        return (places.first { access($0 + instance, F_OK) == 0 } ?? places.first).map { $0 + instance }
    }

    /// Why this source can't be used in this environment; nil if it can.
    static func obstacle(_ environment: [String: String]) -> String? {
        environment["HYPRLAND_INSTANCE_SIGNATURE"] == nil ? "$HYPRLAND_INSTANCE_SIGNATURE is not set" : nil
    }

    func begin(on driver: SourceDriver) throws(SourceFault) {
        events = connect(".socket2.sock", on: driver.loop) { [weak self] bytes in self?.takeEvents(bytes) }
        guard events != nil else { throw .system("Hyprland can't be reached in \(folder)") }
        self.driver = driver
        questions = PacedQuestion(on: driver.loop) { [weak self] in self?.ask() }
        questions?.want()
    }

    func end() { (events, questions, question, driver, line) = (nil, nil, nil, nil, []) }

    private func connect(_ name: String, on loop: EventLoop, _ hear: @escaping ([UInt8]) -> Void) -> SocketStream? {
        SocketStream(
            folder + "/" + name,
            on: loop,
            limit: limit,
            isSilent: { [weak self, limit] in self?.driver?.fail(.silence("Hyprland", $0, limit)) },
            hear
        )
    }

    private static let gone = "Hyprland went away"
    private static let nonsense = "Hyprland sent something unintelligible"

    private func takeEvents(_ bytes: [UInt8]) {
        if bytes.isEmpty { driver?.fail(SourceFault(HyprlandSource.gone)) }
        for byte in bytes {
            if byte != UInt8(ascii: "\n") {
                if line.count < 64 { line.append(byte) }
                continue
            }
            if HyprlandWire.concernsFocus(line) { questions?.want() }
            line = []
        }
    }

    // MARK: - Questions

    /// Each takes a connection of its own, which ends behind the answer. Hyprland does not draw while it answers.
    private func ask() {
        guard let driver else { return }
        answer = JSONReader(keeping: HyprlandWire.keys)
        question = connect(".socket.sock", on: driver.loop) { [weak self] bytes in self?.takeAnswer(bytes) }
        if question?.ask(HyprlandWire.question, "activewindow") != true {
            driver.fail(SourceFault(HyprlandSource.gone))
        }
    }

    private func takeAnswer(_ bytes: [UInt8]) {
        guard bytes.isEmpty else {
            if !answer.take(bytes[...]) { driver?.fail(SourceFault(HyprlandSource.nonsense)) }
            return
        }
        question = nil
        let found = HyprlandWire.answer(answer.finish())
        // If something has happened since it was asked, it is asked once more, perhaps at once.
        questions?.isAnswered()
        switch found {
        case nil: driver?.fail(SourceFault(HyprlandSource.nonsense))
        case .nobody?: driver?.reportFocus(nil)
        case .window(let window)?: driver?.reportFocus(window)
        }
    }
}
