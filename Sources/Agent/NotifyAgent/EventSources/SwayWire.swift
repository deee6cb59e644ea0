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
        package let payload: [UInt8]

        package init(kind: UInt32, payload: [UInt8]) {
            self.kind = kind
            self.payload = payload
        }
    }

    package enum Fault: Error, Equatable {
        case noSuchProtocol
        case tooLong(UInt32)
    }

    package static let magic = Array("i3-ipc".utf8)
    private static let headerSize = 14
    /// A tree of thousands of windows has a few megabytes.
    package static let maximumSize: UInt32 = 16_777_216

    /// A message as it is sent; numbers are in the machine's own byte order.
    package static func message(_ kind: UInt32, _ payload: String = "") -> [UInt8] {
        var bytes = magic
        withUnsafeBytes(of: UInt32(payload.utf8.count)) { bytes += $0 }
        withUnsafeBytes(of: kind) { bytes += $0 }
        return bytes + payload.utf8
    }

    /// Takes the first message off a buffer, without moving what is behind it; nil if it is not all there yet.
    package static func take(from buffer: inout ArraySlice<UInt8>) throws(Fault) -> Message? {
        guard buffer.prefix(magic.count).elementsEqual(magic.prefix(buffer.count)) else { throw .noSuchProtocol }
        guard buffer.count >= headerSize else { return nil }
        func number(at offset: Int) -> UInt32 {
            buffer.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: UInt32.self) }
        }
        let (length, kind) = (number(at: 6), number(at: 10))
        guard length <= maximumSize else { throw .tooLong(length) }
        guard buffer.count >= headerSize + Int(length) else { return nil }
        let rest = buffer.dropFirst(headerSize)
        buffer = rest.dropFirst(Int(length))
        return Message(kind: kind, payload: Array(rest.prefix(Int(length))))
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
