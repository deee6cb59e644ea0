// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import NotifyCoordinator

/// The focus in niri, whose event stream names the process of each window.
final class NiriSource: Source {
    private let path: String
    private var socket: Int32 = -1
    private weak var driver: SourceDriver?
    private var lines = LineSplitter()
    private var wire = NiriWire()

    init(path: String) { self.path = path }

    /// What speaks against it in this environment; nil if nothing does.
    static func obstacle(_ environment: [String: String]) -> String? {
        environment["NIRI_SOCKET"] == nil ? "$NIRI_SOCKET is not set" : nil
    }

    func begin(on driver: SourceDriver) throws(SourceFault) {
        socket = linux_connect_unix(path)
        guard socket >= 0 else { throw .system("niri can't be reached at $NIRI_SOCKET") }
        self.driver = driver
        driver.loop.watch(socket) { [weak self] in self?.read() }
        let request = NiriWire.request
        guard send(socket, request, request.count, Int32(MSG_NOSIGNAL)) == request.count else {
            throw SourceFault(NiriSource.gone)
        }
    }

    func end() {
        guard socket >= 0 else { return }
        driver?.loop.forget(socket)
        close(socket)
        (socket, driver, lines, wire) = (-1, nil, LineSplitter(), NiriWire())
    }

    private static let gone = "niri went away"
    private static let nonsense = "niri sent something unintelligible"

    private func read() {
        guard let bytes = SocketReading.some(of: socket) else { return }
        guard !bytes.isEmpty, let complete = lines.take(bytes) else {
            driver?.fail(SourceFault(bytes.isEmpty ? NiriSource.gone : NiriSource.nonsense))
            return
        }
        var mayHaveMoved = false
        do throws(NiriWire.Fault) {
            for line in complete where try wire.take(line) { mayHaveMoved = true }
        } catch {
            driver?.fail(SourceFault(error == .refused ? "niri refused its event stream" : NiriSource.nonsense))
            return
        }
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

/// Reading from a socket that doesn't block.
enum SocketReading {
    /// - Returns: nil if there is nothing yet; nothing if the other side has gone.
    static func some(of socket: Int32) -> [UInt8]? {
        var (count, code): (Int, Int32) = (0, 0)
        let bytes = [UInt8](unsafeUninitializedCapacity: 65_536) { buffer, initialized in
            count = recv(socket, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
            if count < 0 { code = errno }
            initialized = max(0, count)
        }
        return code == EAGAIN || code == EINTR ? nil : bytes
    }
}
