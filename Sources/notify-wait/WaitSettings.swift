// SPDX-License-Identifier: Apache-2.0

import CommandSupport

/// What the command line of `notify-wait` asks for, as it was written.
struct WaitSettings: CommonSettings {
    enum OnBusy {
        case queue, each, drop, restart
    }

    var common = CommonOptions()

    var count: Int?
    var follows = false
    var wantsAll = false
    var isPrefix = false
    var timeout: Duration?
    /// How long nothing must come before what has come is dealt with, as one.
    var settle: Duration?
    /// Whether it waits for a bus that is not there yet.
    var retries = false

    var isJSON = false
    var format: RecordFormat?
    var endsWithNull = false

    var readyDescriptor: Int32?
    var readyFile: Argument?
    var then: Argument?

    var onBusy: OnBusy?
    /// The command to run at each notification, with its arguments.
    var command: [Argument]?

    /// Whether each notification is written to standard output. With a command its output is what counts, so there
    /// the names must be asked for.
    var printsNames: Bool {
        if common.verbosity == .quiet { return false }
        return command == nil || shapesRecords || common.verbosity == .verbose
    }

    private var shapesRecords: Bool {
        isJSON || format != nil || endsWithNull
    }

    /// Throws if two options contradict each other.
    func check() throws(UsageError) {
        if count != nil && follows {
            throw UsageError("--count ends the wait and --follow never does; keep one of them")
        }
        if wantsAll && (count != nil || follows) {
            throw UsageError(
                "--all ends the wait when each name has come; leave out \(follows ? "--follow" : "--count")"
            )
        }
        if isJSON && format != nil {
            throw UsageError("--json and --format both say what a record looks like; keep one of them")
        }
        if common.verbosity == .quiet && shapesRecords {
            throw UsageError("--quiet prints no names, so --json, --format and --null have nothing to shape")
        }
        if let command, command.isEmpty {
            throw UsageError("a command must follow '--'")
        }
        if onBusy != nil && command == nil {
            throw UsageError("--on-busy is about the command after '--', and there is none")
        }
    }
}
