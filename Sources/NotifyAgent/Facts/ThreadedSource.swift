// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore
import NotifyEvents

/// A source of facts on a helper thread, which may hang for as long as what it talks to hangs: a source of events does the
/// same work, with the same driver that begins it again when it has failed.
///
/// Of facts that come fast only the newest is passed on to the agent's thread, by a board on the helper thread.
final class ThreadedSource: LifecycleSource {
    private let name: String
    private let reporter: FactReporter
    private let loop: EventLoop
    private let make: @Sendable (FactReporter) -> any Source
    private var thread: EventThread?
    private var port: Port<SourceNews>?

    /// - Parameters:
    ///   - loop: the agent's.
    ///   - make: called on the helper thread.
    init(
        _ name: String,
        _ reporter: FactReporter,
        on loop: EventLoop,
        _ make: @escaping @Sendable (FactReporter) -> any Source
    ) {
        (self.name, self.reporter, self.loop, self.make) = (name, reporter, loop, make)
    }

    func start() {
        do throws(NotifyBusError) {
            let thread = try EventThread(name: name)
            let port = loop.port { [weak self] news in self?.reporter.add(news) }
            (self.thread, self.port) = (thread, port)
            thread.perform { [name, make] loop in ThreadedSource.begin(name, make, on: loop, to: port) }
        } catch {
            reporter.report(.off(error.description))
        }
    }

    private static func begin(
        _ name: String,
        _ make: (FactReporter) -> any Source,
        on loop: EventLoop,
        to port: Port<SourceNews>
    ) {
        weak var board: FactBoard?
        let passOn = { if let news = board?.take()[name] { port.send(news) } }
        let made = FactBoard { time in
            if let time { _ = loop.at(MonotonicTime(nanoseconds: time), passOn) } else { loop.soon(passOn) }
        }
        board = made
        let reporter = FactReporter(name, made)
        let driver = SourceDriver(make(reporter), on: loop) { reporter.report($0.map { .off($0) } ?? .live) }
        loop.drivers[name] = driver
        driver.begin()
    }

    func stop() {
        reporter.close()
        loop.close(port)
        thread?.stop()
    }
}
