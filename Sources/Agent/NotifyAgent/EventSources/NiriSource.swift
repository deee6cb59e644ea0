// SPDX-License-Identifier: Apache-2.0

import NotifyCore

/// The focus in niri, whose event stream names the process of each window.
final class NiriSource: Source {
    private let path: String
    private let limit: Int64
    private var stream: SocketStream?
    private weak var driver: SourceDriver?
    private var wire = NiriWire()

    /// - Parameter limit: how long niri may take to answer, in milliseconds.
    init(path: String, limit: Int64 = BusLink.usualAnswerLimit) { (self.path, self.limit) = (path, limit) }

    /// Why this source can't be used in this environment; nil if it can.
    static func obstacle(_ environment: [String: String]) -> String? {
        environment["NIRI_SOCKET"] == nil ? "$NIRI_SOCKET is not set" : nil
    }

    func begin(on driver: SourceDriver) throws(SourceFault) {
        stream = SocketStream(
            path,
            on: driver.loop,
            limit: limit,
            isSilent: { [weak self, limit] in self?.driver?.fail(.silence("niri", $0, limit)) },
            { [weak self] bytes in self?.read(bytes) }
        )
        guard let stream else { throw .system("niri can't be reached at $NIRI_SOCKET") }
        self.driver = driver
        guard stream.ask(NiriWire.request, "EventStream") else { throw SourceFault(NiriSource.gone) }
    }

    func end() { (stream, driver, wire) = (nil, nil, NiriWire()) }

    private static let gone = "niri went away"
    private static let nonsense = "niri sent something unintelligible"

    private func read(_ bytes: [UInt8]) {
        if bytes.isEmpty {
            driver?.fail(SourceFault(NiriSource.gone))
            return
        }
        let mayHaveMoved: Bool
        do throws(NiriWire.Fault) {
            mayHaveMoved = try wire.take(bytes)
        } catch {
            driver?.fail(SourceFault(error == .refused ? "niri refused its event stream" : NiriSource.nonsense))
            return
        }
        // The stream begins with the windows that are there.
        if wire.hasWindows { _ = stream?.isAnswered("EventStream") }
        if mayHaveMoved { report() }
    }

    private func report() {
        guard let driver else { return }
        guard wire.window?.pid != 0 else {
            driver.fail(SourceFault("niri does not report which process a window belongs to"))
            return
        }
        driver.reportFocus(wire.window)
    }
}
