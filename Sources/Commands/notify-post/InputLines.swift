// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyCore

/// Posts the names read from standard input, one per line.
struct InputLines {
    private var reader: LineReader
    private let isLiteral: Bool
    private var number = 0
    /// The last line that the bus is known to have accepted.
    private var confirmed = 0
    /// The name on the previous line. In long input the next line is often the same, and comparing is cheaper than
    /// validating and copying again.
    private var previous: NotifyName?
    /// Whether a line was not a valid name or could not be posted.
    private(set) var hasFailed = false

    /// - Parameter isLiteral: whether a name may have blanks at its ends.
    init(deadline: Deadline?, isLiteral: Bool) {
        self.isLiteral = isLiteral
        reader = LineReader(descriptor: STDIN_FILENO, deadline: deadline)
    }

    /// Posts every line up to the end of the input. Invalid lines are only reported.
    ///
    /// - Throws: ``PostFailure`` with the first line that the bus has not confirmed, if the bus is lost or time runs out.
    mutating func post(by poster: inout Poster, _ diagnostics: Diagnostics) throws(PostFailure) {
        do throws(PostFailure) {
            try postLines(by: &poster, diagnostics)
        } catch {
            throw located(error)
        }
    }

    private mutating func postLines(by poster: inout Poster, _ diagnostics: Diagnostics) throws(PostFailure) {
        while true {
            // Confirm what was posted before waiting for more, so that a failure can say what was posted.
            switch reader.next(waits: confirmed == number) {
            case .line(let bytes):
                number += 1
                try post(bytes, by: &poster, diagnostics)
            case .overlong:
                number += 1
                report("too long; a name has at most \(LineReader.longest) bytes", diagnostics)
            case .dry:
                try confirm(by: &poster)
            case .end:
                return try confirm(by: &poster)
            case .timedOut:
                throw .timedOut("standard input did not end")
            case .failed(let error):
                try confirm(by: &poster)
                diagnostics.error("can't read standard input: \(describe(errno: error))")
                hasFailed = true
                return
            }
        }
    }

    private mutating func confirm(by poster: inout Poster) throws(PostFailure) {
        if confirmed < number { try poster.confirm() }
        confirmed = number
    }

    private mutating func post(
        _ bytes: UnsafeRawBufferPointer,
        by poster: inout Poster,
        _ diagnostics: Diagnostics
    ) throws(PostFailure) {
        if !isLiteral, let blank = NameMistake.blank(in: bytes) {
            return report("'\(Printable.text(bytes, limit: 60))' \(blank)\(NameMistake.remedy)", diagnostics)
        }
        let name: NotifyName
        do throws(NotifyBusError) {
            name = try self.name(bytes)
        } catch {
            return report(error.description, diagnostics)
        }
        if name.staysInProcess { return report(NotifyName.confinement, diagnostics) }
        do throws(PostFailure) {
            if try poster.post(name) { confirmed = number }
        } catch {
            guard error.isOfName else { throw error }
            report(error.message, diagnostics)
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

    /// The failure with the lines that it concerns.
    private func located(_ failure: PostFailure) -> PostFailure {
        let first = confirmed + 1
        if number <= first { return failure.at(line: first, "the lines before it were posted") }
        return failure.at(
            line: first,
            "the lines before it were posted; those up to line \(number) may have been"
        )
    }

    private mutating func report(_ reason: String, _ diagnostics: Diagnostics) {
        hasFailed = true
        diagnostics.error("line \(number): \(reason)")
    }
}
