// SPDX-License-Identifier: Apache-2.0

package import CommandSupport
package import NotifyCore

/// For `catch-up`: the last stamp of each name. Of the stamps that the broker retained, only new ones stand for a post.
/// Kept in a file, for when the bridge restarts.
package struct SeenStamps {
    private static let file = "bridge-seen"
    /// Beyond this, a name may be heard once more than it was posted.
    private static let capacity = 65_536
    /// The size of these names, each its length plus 64 bytes.
    private static let maximumSize = 12 << 20
    /// A name has up to three times its length as a topic; the rest is for stamps, and for what `import` lists.
    private static let maximumFileSize = 4 * maximumSize

    private let folder: StateFolder
    /// Which broker and realm this is about.
    private let title: String
    private let imports: NameRules
    private var stamps: [NotifyName: Stamp] = [:]
    private var size = 0
    /// The names that an earlier connection subscribed to. A newcomer hears nothing from before: for names that were
    /// added later, only the stamps are recorded.
    private var known = NameRules([])
    /// Whether the broker has sent all its retained messages.
    private var isComplete = false
    private var isChanged = false

    /// Reads the file, if there is one for the same broker and realm.
    package init(in folder: StateFolder, _ configuration: BridgeConfiguration) {
        self.folder = folder
        title = "\(configuration.broker) \(configuration.realm)"
        imports = configuration.imports
        guard let text = folder.text(of: Self.file, limit: Self.maximumFileSize) else { return }
        var lines = text.split(separator: "\n")[...]
        guard lines.popFirst().map(String.init) == title else { return }
        let map = TopicMap(realm: configuration.realm)
        var rules: [NameRule] = []
        for line in lines {
            guard let space = line.firstIndex(of: " ") else { continue }
            let (key, value) = (line[..<space], line[line.index(after: space)...])
            var topic = Array(value.utf8)
            let name = topic.withUnsafeMutableBytes { map.name(of: UnsafeRawBufferPointer($0)) }
            if let name {
                if key == "name" { rules.append(.name(name)) }
                if key == "prefix" { rules.append(.prefix(name.string)) }
                if let stamp = Stamp(Array(key.utf8)) { _ = note(stamp, of: name) }
            }
        }
        known = NameRules(rules)
        isChanged = false
    }

    /// Records a stamp.
    ///
    /// - Returns: whether it differs from the last one.
    package mutating func note(_ stamp: Stamp, of name: NotifyName) -> Bool {
        let last = stamps[name]
        if last == stamp { return false }
        if last == nil {
            let cost = name.string.utf8.count + 64
            guard stamps.count < Self.capacity, size + cost <= Self.maximumSize else { return true }
            size += cost
        }
        stamps[name] = stamp
        isChanged = true
        return true
    }

    /// Whether a retained stamp of this name can stand for a missed post.
    package func knows(_ name: NotifyName) -> Bool { known.allow(name) }

    /// The broker has sent all its retained messages. After a restart the bridge knows what it has missed since.
    package mutating func complete() {
        isComplete = true
        isChanged = true
    }

    /// The connection has ended, so the retained messages will be sent again.
    package mutating func endConnection() {
        if isComplete { known = imports }
    }

    /// Writes the file if anything changed.
    package mutating func save() throws(ConfigurationError) {
        guard isChanged else { return }
        isChanged = false
        let map = TopicMap(realm: String(title.split(separator: " ").last ?? ""))
        var text = title + "\n"
        let rules = isComplete ? imports : known
        // Topics, because names may contain newlines.
        for name in rules.names { text += "name \(map.topic(of: name))\n" }
        for prefix in rules.prefixes {
            if let name = try? NotifyName(prefix) { text += "prefix \(map.topic(of: name))\n" }
        }
        for (name, stamp) in stamps { text += "\(stamp) \(map.topic(of: name))\n" }
        do throws(TextFile.Fault) {
            try folder.replace(Self.file, with: text)
        } catch {
            throw ConfigurationError("\(folder.path)/\(Self.file) \(error): after a restart, names may be heard again")
        }
    }
}
