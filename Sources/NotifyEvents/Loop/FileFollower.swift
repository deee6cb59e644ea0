// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore

/// Follows files on a loop's thread.
package final class FileFollower {
    private enum News: Sendable {
        case changed(Int)
        case obstructed(Int, String?)
    }

    private struct Followed {
        let file: MonitoredFile
        let changed: () -> Void
        let obstructed: (String?) -> Void
    }

    private let loop: EventLoop
    private let monitors: FileMonitors
    /// What `readChanges` has reported.
    private let news = Monitor([News]())
    private var files: [Int: Followed] = [:]
    private var last = 0
    private var timer: Int?

    package init(on loop: EventLoop) throws(SourceFault) {
        self.loop = loop
        do throws(NotifyBusError) {
            monitors = try FileMonitors()
        } catch {
            throw SourceFault(error.description)
        }
        loop.watch(monitors.descriptor) { [weak self] in self?.read() }
    }

    deinit {
        loop.forget(monitors.descriptor)
        loop.cancel(timer)
    }

    package var isEmpty: Bool { files.isEmpty }

    /// - Parameters:
    ///   - path: absolute.
    ///   - changed: called for each change.
    ///   - obstructed: called with the reason why it can't be followed, and with nil when it can again.
    /// - Returns: a number for `leave`.
    package func follow(
        _ path: String,
        changed: @escaping () -> Void,
        obstructed: @escaping (String?) -> Void = { _ in }
    ) -> Int? {
        last += 1
        let (number, news) = (last, news)
        let file = MonitoredFile(
            path: path,
            changed: { news.withLock { $0.append(.changed(number)) } },
            obstructed: { reason in news.withLock { $0.append(.obstructed(number, reason)) } }
        )
        guard let file else { return nil }
        files[number] = Followed(file: file, changed: changed, obstructed: obstructed)
        if let reason = monitors.add(file) { obstructed(reason) }
        arm()
        return number
    }

    package func leave(_ number: Int) {
        if let file = files.removeValue(forKey: number)?.file { monitors.remove(file) }
        arm()
    }

    private func read() {
        monitors.readChanges()
        arm()
        let found = news.withLock { news in
            defer { news = [] }
            return news
        }
        for piece in found {
            switch piece {
            case .changed(let number): files[number]?.changed()
            case .obstructed(let number, let reason): files[number]?.obstructed(reason)
            }
        }
    }

    private func arm() {
        loop.cancel(timer)
        timer = monitors.deadline.map { deadline in
            loop.after(Int64(deadline.millisecondsFromNow)) { [weak self] in self?.read() }
        }
    }
}
