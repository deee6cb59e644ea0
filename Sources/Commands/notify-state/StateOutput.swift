// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyCore

/// Prints states on standard output, one per line.
struct StateOutput {
    private let isJSON: Bool
    private let hasNames: Bool

    /// - Parameter hasNames: whether the name precedes the value.
    init(_ settings: StateSettings, hasNames: Bool) {
        isJSON = settings.isJSON
        self.hasNames = hasNames
    }

    /// - Returns: whether standard output still has a reader.
    func write(_ name: NotifyName, _ value: UInt64) throws(CommandFailure) -> Bool {
        var line: [UInt8] = []
        let isForTerminal = StandardStreams.outputIsTerminal
        if isJSON {
            line += #"{"name":""#.utf8
            JSONText.append(name.string, to: &line, isForTerminal: isForTerminal)
            line += #"","state":\#(value)}"#.utf8
        } else {
            if hasNames { line += ((isForTerminal ? Printable.text(name.string) : name.string) + "\t").utf8 }
            line += String(value).utf8
        }
        line.append(UInt8(ascii: "\n"))
        return try StandardStreams.print(String(decoding: line, as: UTF8.self))
    }
}
