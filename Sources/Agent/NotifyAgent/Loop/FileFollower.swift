// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore

/// Follows files and directories on a loop.
final class FileFollower {
    private let files: LoopFiles
    private let handle: (FileMonitors.Change) -> Void
    /// The numbers that `files` has given, by the caller's.
    private var numbers: [Int: Int] = [:]

    /// - Parameter handle: called with what has become of them.
    /// - Throws: `failed` if no inotify instance is available.
    init(on loop: EventLoop, handle: @escaping (FileMonitors.Change) -> Void) throws(NotifyBusError) {
        files = try LoopFiles.shared(on: loop)
        self.handle = handle
    }

    deinit {
        for number in numbers.values { files.leave(number) }
    }

    /// - Parameters:
    ///   - number: the caller's own, for `handle` and `leave`.
    ///   - path: absolute.
    func follow(_ path: String, as number: Int, heedsAttributes: Bool = false) {
        leave(number)
        let (given, obstacle) = files.follow(path, heedsAttributes: heedsAttributes) { [weak self] change in
            switch change {
            case .changed: self?.handle(.changed(number))
            case .obstructed(_, let reason): self?.handle(.obstructed(number, reason))
            }
        }
        numbers[number] = given
        if let obstacle { handle(.obstructed(number, obstacle)) }
    }

    func leave(_ number: Int) {
        if let given = numbers.removeValue(forKey: number) { files.leave(given) }
    }
}

/// The files that all on a loop follow: a user may have only 128 inotify instances.
final class LoopFiles {
    private let loop: EventLoop
    private var monitors: FileMonitors
    private var handlers: [Int: (FileMonitors.Change) -> Void] = [:]
    private var lastNumber = 0
    private var timer: Int?

    static func shared(on loop: EventLoop) throws(NotifyBusError) -> LoopFiles {
        if let files = loop.files { return files }
        let files = try LoopFiles(on: loop)
        loop.files = files
        return files
    }

    private init(on loop: EventLoop) throws(NotifyBusError) {
        self.loop = loop
        monitors = try FileMonitors()
        loop.watch(monitors.descriptor) { [weak self] in self?.take() }
        guard let mounts = monitors.mountDescriptor else { return }
        loop.watch(mounts, Int32(POLLPRI)) { [weak self] in
            self?.monitors.mountsHaveChanged()
            self?.take()
        }
    }

    deinit {
        loop.forget(monitors.descriptor)
        if let mounts = monitors.mountDescriptor { loop.forget(mounts) }
        loop.cancel(timer)
    }

    func follow(
        _ path: String,
        heedsAttributes: Bool,
        _ handle: @escaping (FileMonitors.Change) -> Void
    ) -> (number: Int, obstacle: String?) {
        lastNumber += 1
        handlers[lastNumber] = handle
        let obstacle = monitors.add(lastNumber, path: path, heedsAttributes: heedsAttributes)
        arm()
        return (lastNumber, obstacle)
    }

    func leave(_ number: Int) {
        handlers[number] = nil
        monitors.remove(number)
        arm()
    }

    private func take() {
        let changes = monitors.takeChanges()
        arm()
        for change in changes {
            switch change {
            case .changed(let number), .obstructed(let number, _): handlers[number]?(change)
            }
        }
    }

    private func arm() {
        loop.cancel(timer)
        timer = monitors.deadline.map { deadline in loop.at(deadline) { [weak self] in self?.take() } }
    }
}

/// The inotify instance that the others on a loop share. No two of them watch the same thing.
final class LoopInotify {
    private let loop: EventLoop
    private let inotify: Inotify
    private var handlers: [Int: ([Inotify.Event]) -> Void] = [:]
    private var lastNumber = 0

    static func shared(on loop: EventLoop) throws(NotifyBusError) -> LoopInotify {
        if let inotify = loop.inotify { return inotify }
        let inotify = try LoopInotify(on: loop)
        loop.inotify = inotify
        return inotify
    }

    private init(on loop: EventLoop) throws(NotifyBusError) {
        self.loop = loop
        inotify = try Inotify()
        loop.watch(inotify.descriptor) { [weak self] in
            guard let self else { return }
            let events = inotify.read()
            for handle in handlers.values { handle(events) }
        }
    }

    deinit { loop.forget(inotify.descriptor) }

    /// - Parameter handle: called with all events, also of what others watch.
    func join(_ handle: @escaping ([Inotify.Event]) -> Void) -> Watches {
        lastNumber += 1
        handlers[lastNumber] = handle
        return Watches(self, lastNumber)
    }

    /// The watches of one of its users. They end with this value.
    final class Watches {
        private let owner: LoopInotify
        private let number: Int
        private var own: Set<Int32> = []

        fileprivate init(_ owner: LoopInotify, _ number: Int) { (self.owner, self.number) = (owner, number) }

        deinit {
            owner.handlers[number] = nil
            for watch in own { owner.inotify.remove(watch) }
        }

        /// - Returns: its number, or -1 with the reason in `errno`.
        func add(_ path: String, _ kinds: Int32) -> Int32 {
            let watch = owner.inotify.add(path, kinds)
            if watch >= 0 { own.insert(watch) }
            return watch
        }

        func remove(_ watch: Int32) {
            own.remove(watch)
            owner.inotify.remove(watch)
        }

        /// The kernel has removed it, and may use its number again.
        func hasEnded(_ watch: Int32) { own.remove(watch) }
    }
}
