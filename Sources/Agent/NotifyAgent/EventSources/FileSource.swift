// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import NotifyNames

/// Names that correspond to files. A file is watched while one of its names is wanted.
final class FileSource: Source {
    /// Which names are posted for which files.
    struct Rule: Sendable {
        let paths: [String]
        let names: [NotifyName]
        /// Whether it counts only if their content differs.
        let comparesContents: Bool

        init(_ paths: [String], _ names: [NotifyName], comparesContents: Bool = false) {
            self.paths = paths
            self.names = names
            self.comparesContents = comparesContents
        }
    }

    private let rules: [Rule]
    /// The paths of all rules, by the number under which each is followed, and whose they are.
    private let paths: [(path: String, rule: Int)]
    /// The numbers of each rule's paths.
    private let numbers: [Range<Int>]
    /// The rules of each name, by their place: there may be a thousand, and names are wanted one after another.
    private let places: [NotifyName: [Int]]
    private var wanted: Set<NotifyName> = []
    private var follower: FileFollower?
    private weak var driver: SourceDriver?
    /// The rules whose files are followed.
    private var followed: Set<Int> = []
    private var contents: [Int: [[UInt8]]] = [:]
    /// By the number of the path.
    private var obstacles: [Int: String] = [:]

    init(_ rules: [Rule]) {
        self.rules = rules
        var places: [NotifyName: [Int]] = [:]
        var paths: [(path: String, rule: Int)] = []
        var numbers: [Range<Int>] = []
        for (index, rule) in rules.enumerated() {
            for name in rule.names { places[name, default: []].append(index) }
            numbers.append(paths.count..<paths.count + rule.paths.count)
            paths += rule.paths.map { ($0, index) }
        }
        (self.places, self.paths, self.numbers) = (places, paths, numbers)
    }

    func want(_ names: Set<NotifyName>) {
        let changed = names.symmetricDifference(wanted)
        wanted = names
        adapt(Set(changed.lazy.flatMap { self.places[$0] ?? [] }))
    }

    func begin(on driver: SourceDriver) throws(SourceFault) {
        follower = try SourceFault.rethrowing { () throws(NotifyBusError) in
            try FileFollower(on: driver.loop) { [weak self] change in self?.handle(change) }
        }
        self.driver = driver
        adapt(rules.indices)
    }

    func end() { (follower, driver, followed, contents, obstacles) = (nil, nil, [], [:], [:]) }

    /// Watches what is wanted now, and nothing else.
    ///
    /// - Parameter indices: the rules for which that may have changed.
    private func adapt(_ indices: some Sequence<Int>) {
        guard let follower else { return }
        for index in indices {
            let rule = rules[index]
            let isWanted = rule.names.contains(where: wanted.contains)
            guard isWanted != followed.contains(index) else { continue }
            if isWanted {
                followed.insert(index)
                for number in numbers[index] { follower.follow(paths[number].path, as: number) }
                if rule.comparesContents { contents[index] = rule.paths.map { SystemFile.bytes(of: $0) ?? [] } }
            } else {
                followed.remove(index)
                contents[index] = nil
                for number in numbers[index] {
                    follower.leave(number)
                    obstacles[number] = nil
                }
            }
        }
        tell()
    }

    private func handle(_ change: FileMonitors.Change) {
        switch change {
        case .changed(let number): changed(paths[number].rule)
        case .obstructed(let number, let reason):
            obstacles[number] = reason
            tell()
        }
    }

    /// The other files are followed anyway.
    private func tell() {
        if let first = obstacles.min(by: { paths[$0.key].path < paths[$1.key].path }) {
            driver?.isOff(first.value)
        } else {
            driver?.isLive()
        }
    }

    private func changed(_ index: Int) {
        let rule = rules[index]
        if rule.comparesContents {
            let new = rule.paths.map { SystemFile.bytes(of: $0) ?? [] }
            guard contents[index] != new else { return }
            contents[index] = new
        }
        for name in rule.names { driver?.post(name) }
    }
}

extension FileSource.Rule {
    static let timeZone = [FileSource.Rule(["/etc/localtime"], ["com.apple.system.timezone"])]

    static let dns = [
        FileSource.Rule(
            ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"],
            ["com.apple.system.config.network_change.dns"],
            comparesContents: true
        )
    ]

    static let accounts: [FileSource.Rule] = {
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

    static let locale = [
        FileSource.Rule(["/etc/locale.conf", "/etc/default/locale"], ["org.notifybus.system.locale"]),
        FileSource.Rule(
            ["/etc/default/keyboard", "/etc/vconsole.conf", "/etc/X11/xorg.conf.d/00-keyboard.conf"],
            ["org.notifybus.system.keyboard"]
        ),
    ]
}
