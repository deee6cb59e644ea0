// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyCore

/// Posts what standard input brings, a name a line.
struct InputLines {
    private var reader = LineReader(descriptor: STDIN_FILENO)
    private var number = 0
    /// The name of the line before, which in a long input is often that of the next: comparing costs less than
    /// checking and copying anew.
    private var previous: NotifyName?
    /// Whether a line was no name or could not be posted.
    private(set) var hasFailed = false

    /// Posts every line up to the end of the input. Throws if the bus is lost; a bad line is only reported.
    mutating func post(by poster: inout Poster, _ diagnostics: Diagnostics) throws(NotifyBusError) {
        while true {
            switch reader.next() {
            case .line(let bytes):
                number += 1
                try post(bytes, by: &poster, diagnostics)
            case .overlong:
                number += 1
                report("a name has at most \(LineReader.longest) bytes, and this line has more", diagnostics)
            case .end:
                return
            case .failed(let error):
                diagnostics.error("can't read standard input: \(Diagnostics.text(of: error))")
                hasFailed = true
                return
            }
        }
    }

    private mutating func post(
        _ bytes: UnsafeRawBufferPointer,
        by poster: inout Poster,
        _ diagnostics: Diagnostics
    ) throws(NotifyBusError) {
        do throws(NotifyBusError) {
            try poster.post(try name(bytes))
        } catch {
            switch error.code {
            case .invalidName, .notPermitted: report(error.description, diagnostics)
            default: throw error
            }
        }
    }

    private mutating func name(_ bytes: UnsafeRawBufferPointer) throws(NotifyBusError) -> NotifyName {
        if let previous, previous.string.utf8.elementsEqual(bytes) {
            return previous
        }
        let name = try NotifyName(utf8: bytes)
        previous = name
        return name
    }

    private mutating func report(_ reason: String, _ diagnostics: Diagnostics) {
        hasFailed = true
        diagnostics.error("line \(number): \(reason)")
    }
}
