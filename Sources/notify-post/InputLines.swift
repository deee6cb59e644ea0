// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyCore

/// Posts what standard input brings, a name a line.
struct InputLines {
    private var reader: LineReader
    private var number = 0
    /// The last line that the bus has surely taken.
    private var confirmed = 0
    /// The name of the line before, which in a long input is often that of the next: comparing costs less than
    /// checking and copying again.
    private var previous: NotifyName?
    /// Whether a line was no name or could not be posted.
    private(set) var hasFailed = false

    init(deadline: Deadline?) {
        reader = LineReader(descriptor: STDIN_FILENO, deadline: deadline)
    }

    /// Posts every line up to the end of the input. A bad line is only reported.
    ///
    /// - Throws: ``PostFailure`` with the line from which on the bus has not confirmed any, if it is lost or time is over.
    mutating func post(by poster: inout Poster, _ diagnostics: Diagnostics) throws(PostFailure) {
        do throws(PostFailure) {
            try postLines(by: &poster, diagnostics)
        } catch {
            throw located(error)
        }
    }

    private mutating func postLines(by poster: inout Poster, _ diagnostics: Diagnostics) throws(PostFailure) {
        while true {
            // Before it waits for more it makes sure of what there was: then it can say what was posted.
            switch reader.next(waits: confirmed == number) {
            case .line(let bytes):
                number += 1
                try post(bytes, by: &poster, diagnostics)
            case .overlong:
                number += 1
                report("a name has at most \(LineReader.longest) bytes, and this line has more", diagnostics)
            case .dry:
                try confirm(by: &poster)
            case .end:
                return try confirm(by: &poster)
            case .timedOut:
                throw .timedOut("the input did not end")
            case .failed(let error):
                try confirm(by: &poster)
                diagnostics.error("can't read standard input: \(Diagnostics.text(of: error))")
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
        let name: NotifyName
        do throws(NotifyBusError) {
            name = try self.name(bytes)
        } catch {
            return report(error.description, diagnostics)
        }
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

    /// The failure with the lines that it is about.
    private func located(_ failure: PostFailure) -> PostFailure {
        let first = confirmed + 1
        if number <= first { return failure.at(line: first, "the lines before it were posted") }
        return failure.at(
            line: first,
            "the lines before it were posted; from there up to line \(number) some may have been"
        )
    }

    private mutating func report(_ reason: String, _ diagnostics: Diagnostics) {
        hasFailed = true
        diagnostics.error("line \(number): \(reason)")
    }
}
