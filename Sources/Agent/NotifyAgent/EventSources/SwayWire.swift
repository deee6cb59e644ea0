// SPDX-License-Identifier: Apache-2.0

/// The messages of sway's interprocess communication. See sway-ipc(7).
package enum SwayWire {
    /// What a message is about.
    package enum Kind {
        package static let subscribe: UInt32 = 2
        package static let tree: UInt32 = 4
        package static let workspaceEvent: UInt32 = 0x8000_0000
        package static let windowEvent: UInt32 = 0x8000_0003
    }

    package struct Message: Equatable, Sendable {
        package let kind: UInt32
        /// What is of interest here; nil if it is not JSON.
        package let payload: JSONValue?

        package init(kind: UInt32, payload: JSONValue?) { (self.kind, self.payload) = (kind, payload) }
    }

    package enum Fault: Error, Equatable {
        case noSuchProtocol
        case tooLong(UInt32)
    }

    package static let magic = Array("i3-ipc".utf8)
    fileprivate static let headerSize = 14
    /// A tree of thousands of windows has a few megabytes.
    fileprivate static let maximumSize: UInt32 = 16_777_216
    fileprivate static let keys: Set = [
        "success", "change", "container", "nodes", "floating_nodes", "focused", "type", "pid",
        "app_id", "window_properties", "class", "fullscreen_mode",
    ]

    /// A message as it is sent; numbers are in the machine's own byte order.
    package static func message(_ kind: UInt32, _ payload: String = "") -> [UInt8] {
        var bytes = magic
        withUnsafeBytes(of: UInt32(payload.utf8.count)) { bytes += $0 }
        withUnsafeBytes(of: kind) { bytes += $0 }
        return bytes + payload.utf8
    }

    /// What has the focus.
    package enum Focus: Equatable, Sendable {
        case window(DesktopWindow)
        case nobody
        /// A window whose process is not told.
        case unknown
    }

    package static func focusedWindow(in tree: JSONValue) -> Focus {
        guard let node = focusedNode(in: tree), isWindow(node) else { return .nobody }
        return window(of: node)
    }

    package static func window(of container: JSONValue) -> Focus {
        guard let pid = container["pid"]?.integer, pid > 0 else { return .unknown }
        // A window of an X program has a class instead.
        let application = container["app_id"]?.text ?? container["window_properties"]?["class"]?.text
        let isFullscreen = container["fullscreen_mode"]?.integer ?? 0 > 0
        return .window(DesktopWindow(pid: pid, application: application ?? "", isFullscreen: isFullscreen))
    }

    private static func isWindow(_ node: JSONValue) -> Bool {
        // Workspaces, outputs and empty containers can have the focus too.
        let type = node["type"]?.text
        return (type == "con" || type == "floating_con") && node["nodes"]?.elements.isEmpty != false
    }

    private static func focusedNode(in node: JSONValue) -> JSONValue? {
        if node["focused"]?.isTrue == true { return node }
        for key in ["nodes", "floating_nodes"] {
            for child in node[key]?.elements ?? [] {
                if let found = focusedNode(in: child) { return found }
            }
        }
        return nil
    }
}

/// Reads messages as they come. Only what is still missing of one is kept of it besides what it says.
package struct SwayReader {
    private var header: [UInt8] = []
    /// How much of the payload has yet to come.
    private var missing = 0
    private var payload = JSONReader(keeping: SwayWire.keys)
    private var isJSON = true

    package init() {}

    /// - Returns: the messages that are complete by now.
    package mutating func take(_ bytes: [UInt8]) throws(SwayWire.Fault) -> [SwayWire.Message] {
        var (rest, messages) = (bytes[...], [SwayWire.Message]())
        func takePart(_ length: Int) -> ArraySlice<UInt8> {
            defer { rest = rest.dropFirst(length) }
            return rest.prefix(length)
        }
        while !rest.isEmpty {
            if header.count < SwayWire.headerSize {
                header += takePart(SwayWire.headerSize - header.count)
                try begin()
                if header.count < SwayWire.headerSize { break }
            }
            let part = takePart(missing)
            missing -= part.count
            isJSON = isJSON && payload.take(part)
            if missing > 0 { break }
            messages.append(SwayWire.Message(kind: number(at: 10), payload: isJSON ? payload.finish() : nil))
            self = SwayReader()
        }
        return messages
    }

    private mutating func begin() throws(SwayWire.Fault) {
        guard header.starts(with: SwayWire.magic.prefix(header.count)) else { throw .noSuchProtocol }
        guard header.count == SwayWire.headerSize else { return }
        guard number(at: 6) <= SwayWire.maximumSize else { throw .tooLong(number(at: 6)) }
        missing = Int(number(at: 6))
    }

    private func number(at offset: Int) -> UInt32 {
        header.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: UInt32.self) }
    }
}
