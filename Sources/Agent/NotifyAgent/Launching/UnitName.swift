// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCoordinator
import NotifyCore

/// Names of units, and their form in object paths.
enum UnitName {
    /// A text as part of a unit's name: illegal characters are written as `\x2d`. See systemd-escape(1).
    static func escaped(_ text: String) -> String {
        var result = ""
        for byte in text.utf8 {
            if isLetterOrDigit(byte) || byte == UInt8(ascii: "_") || byte == UInt8(ascii: ".")
                || byte == UInt8(ascii: ":")
            {
                result.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                result += "\\x" + hexadecimal(byte)
            }
        }
        return result
    }

    /// The object path of a unit: everything but letters and digits is written as `_2e`.
    static func path(of unit: String) -> String {
        var result = "/org/freedesktop/systemd1/unit/"
        for (place, byte) in unit.utf8.enumerated() {
            let isDigit = (0x30...0x39).contains(byte)
            if isLetterOrDigit(byte), !(isDigit && place == 0) {
                result.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                result += "_" + hexadecimal(byte)
            }
        }
        return result
    }

    /// The unit of an object path; nil if there is none.
    static func unit(ofPath path: String) -> String? {
        let prefix = "/org/freedesktop/systemd1/unit/"
        guard path.utf8.starts(with: prefix.utf8) else { return nil }
        var bytes: [UInt8] = []
        var rest = path.utf8.dropFirst(prefix.utf8.count)
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "_") else {
                bytes.append(byte)
                continue
            }
            guard let text = String(rest.prefix(2)), text.utf8.count == 2, let value = UInt8(text, radix: 16) else {
                return nil
            }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
    }

    private static func hexadecimal(_ byte: UInt8) -> String {
        (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }
}

/// The units of registered processes, while there are entries.
struct ProcessUnits {
    private let servesMachine: Bool
    /// Empty if it has none.
    private var units: [ProcessID: String] = [:]

    init(servesMachine: Bool) { self.servesMachine = servesMachine }

    /// The unit in which a process runs, if it is managed by the service manager of this bus.
    mutating func unit(of process: ProcessHandle) -> String? {
        let isTrusted = Caller(user: process.user).mayChange(geteuid())
        guard isTrusted || servesMachine else { return nil }
        let id = ProcessID(process)
        if let known = units[id] { return known.isEmpty ? nil : known }
        let cgroups = process.read { $0.cgroups } ?? []
        // Another user may have been given a part of the tree, and may call the cgroups in it as they like.
        let found = cgroups.lazy.compactMap { AppIdentity.unit(ofCgroup: $0, isOutermost: !isTrusted) }.first
        let unit = found.flatMap { servesMachine && $0.isOfUser ? nil : $0.name }
        units[id] = unit ?? ""
        return unit
    }

    mutating func forget(_ process: ProcessID) { units[process] = nil }
    mutating func forgetAll() { units = [:] }
}
