// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
package import NotifyNames

/// Names that correspond to files. A file is watched while one of its names is wanted.
package final class FileSource: EventSource {
    /// Which names are posted for which files.
    package struct Rule {
        let paths: [String]
        let names: [NotifyName]
        /// Whether it counts only if their content differs.
        let comparesContents: Bool

        package init(_ paths: [String], _ names: [NotifyName], comparesContents: Bool = false) {
            self.paths = paths
            self.names = names
            self.comparesContents = comparesContents
        }
    }

    private let reporter: EventReporter
    private let rules: [Rule]
    /// The rules of each name, by their place: there may be a thousand, and names are wanted one after another.
    private let places: [NotifyName: [Int]]
    private var wanted: Set<NotifyName> = []
    private var follower: FileFollower?
    private weak var driver: SourceDriver?
    private var followed: [Int: [Int]] = [:]
    private var contents: [Int: [[UInt8]]] = [:]
    private var obstacles: [String: String] = [:]

    package init(_ reporter: EventReporter, _ rules: [Rule]) {
        self.reporter = reporter
        self.rules = rules
        var places: [NotifyName: [Int]] = [:]
        for (index, rule) in rules.enumerated() {
            for name in rule.names { places[name, default: []].append(index) }
        }
        self.places = places
    }

    package func want(_ names: Set<NotifyName>) {
        let changed = names.symmetricDifference(wanted)
        wanted = names
        adapt(Set(changed.lazy.flatMap { self.places[$0] ?? [] }).sorted())
    }

    package func begin(on driver: SourceDriver) throws(SourceFault) {
        follower = try FileFollower(on: driver.loop)
        self.driver = driver
        adapt(rules.indices)
    }

    package func end() { (follower, driver, followed, contents, obstacles) = (nil, nil, [:], [:], [:]) }

    /// Watches what is wanted now, and nothing else.
    ///
    /// - Parameter indices: the rules for which that may have changed.
    private func adapt(_ indices: some Sequence<Int>) {
        guard let follower else { return }
        for index in indices {
            let rule = rules[index]
            let isWanted = rule.names.contains(where: wanted.contains)
            guard isWanted != (followed[index] != nil) else { continue }
            if isWanted {
                followed[index] = rule.paths.compactMap { path in
                    follower.follow(path, changed: { [weak self] in self?.changed(index) }) { [weak self] reason in
                        self?.obstacles[path] = reason
                        self?.tell()
                    }
                }
                if rule.comparesContents { contents[index] = rule.paths.map(FileSource.read) }
            } else {
                for number in followed.removeValue(forKey: index) ?? [] { follower.leave(number) }
                for path in rule.paths { obstacles[path] = nil }
                contents[index] = nil
            }
        }
        tell()
    }

    /// The other files are followed anyway.
    private func tell() {
        guard let driver else { return }
        if let first = obstacles.min(by: { $0.key < $1.key }) {
            reporter.report(.off(first.value))
        } else {
            driver.isLive()
        }
    }

    private func changed(_ index: Int) {
        let rule = rules[index]
        if rule.comparesContents {
            let new = rule.paths.map(FileSource.read)
            guard contents[index] != new else { return }
            contents[index] = new
        }
        for name in rule.names { reporter.post(name) }
    }

    private static func read(_ path: String) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else { return [] }
        defer { close(descriptor) }
        return [UInt8](unsafeUninitializedCapacity: 65_536) { buffer, count in
            while count < buffer.count {
                let size = Glibc.read(descriptor, buffer.baseAddress?.advanced(by: count), buffer.count - count)
                guard size > 0 else { break }
                count += size
            }
        }
    }
}

extension FileSource.Rule {
    package static let timeZone = [FileSource.Rule(["/etc/localtime"], ["com.apple.system.timezone"])]

    package static let dns = [
        FileSource.Rule(
            ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"],
            ["com.apple.system.config.network_change.dns"],
            comparesContents: true
        )
    ]

    package static let accounts: [FileSource.Rule] = {
        func rule(_ file: String, _ names: NotifyName...) -> FileSource.Rule {
            FileSource.Rule(["/etc/" + file], ["com.apple.system.DirectoryService.InvalidateCache"] + names)
        }
        return [
            rule("passwd", "com.apple.system.DirectoryService.InvalidateCache.user"),
            rule("group", "com.apple.system.DirectoryService.InvalidateCache.group"),
            rule(
                "hosts",
                "com.apple.system.DirectoryService.InvalidateCache.host",
                "com.apple.system.info:/etc/hosts"
            ),
            rule(
                "services",
                "com.apple.system.DirectoryService.InvalidateCache.service",
                "com.apple.system.info:/etc/services"
            ),
            rule(
                "protocols",
                "com.apple.system.DirectoryService.InvalidateCache.service",
                "com.apple.system.info:/etc/protocols"
            ),
        ]
    }()

    package static let locale = [
        FileSource.Rule(["/etc/locale.conf", "/etc/default/locale"], ["org.notifybus.system.locale"]),
        FileSource.Rule(
            ["/etc/default/keyboard", "/etc/vconsole.conf", "/etc/X11/xorg.conf.d/00-keyboard.conf"],
            ["org.notifybus.system.keyboard"]
        ),
    ]
}
