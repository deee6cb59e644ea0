// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyAgent

struct ConfigurationError: Error {
    let message: String
}

/// Settings, one a line as `KEY = VALUE`; empty lines and those that begin with `#` mean nothing.
enum ConfigurationFile {
    private static let maximumSize = 1_048_576

    static func read(_ file: Argument, into configuration: inout Agent.Configuration) throws(ConfigurationError) {
        let name = Printable.text(file.bytes)
        let text = try contents(file, name)
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            if let fault = apply(line, to: &configuration) {
                throw ConfigurationError(message: "\(name):\(index + 1): \(fault)")
            }
        }
    }

    /// - Returns: what is wrong with the line.
    static func apply(_ line: Substring, to configuration: inout Agent.Configuration) -> String? {
        let line = trimmed(line)
        if line.isEmpty || line.first == "#" { return nil }
        guard let equals = line.firstIndex(of: "=") else {
            return "there is no '=' in '\(Printable.text(String(line)))'"
        }
        let key = trimmed(line[..<equals])
        let value = trimmed(line[line.index(after: equals)...])
        guard key == "exempt" else { return "there is no setting '\(Printable.text(String(key)))'; there is 'exempt'" }
        guard case .application(let id) = Target(String(value)) else {
            return "'\(Printable.text(String(value)))' is no application; write app:ID, as in app:org.gnome.Maps"
        }
        configuration.exemptApplications.insert(id)
        return nil
    }

    private static func trimmed(_ text: Substring) -> Substring {
        func isBlank(_ character: Character) -> Bool { character == " " || character == "\t" || character == "\r" }
        var text = text.drop(while: isBlank)
        while let last = text.last, isBlank(last) { text.removeLast() }
        return text
    }

    private static func contents(_ file: Argument, _ name: String) throws(ConfigurationError) -> String {
        let descriptor = open(file.start, O_RDONLY | O_CLOEXEC | O_NOCTTY)
        guard descriptor >= 0 else {
            throw ConfigurationError(message: "can't read \(name): \(Diagnostics.text(of: errno))")
        }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        while bytes.count <= maximumSize {
            var code: Int32 = 0
            let chunk = [UInt8](unsafeUninitializedCapacity: 16_384) { buffer, count in
                let result = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
                if result < 0 { code = errno }
                count = max(0, result)
            }
            guard code == 0 || code == EINTR else {
                throw ConfigurationError(message: "can't read \(name): \(Diagnostics.text(of: code))")
            }
            if chunk.isEmpty, code == 0 { break }
            bytes += chunk
        }
        guard bytes.count <= maximumSize, let text = String(validating: bytes, as: UTF8.self) else {
            throw ConfigurationError(message: "\(name) is no text, or longer than 1 MB")
        }
        return text
    }
}
