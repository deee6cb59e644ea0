// SPDX-License-Identifier: Apache-2.0

import CommandSupport

/// The options of `notify-wait` as given on the command line.
struct WaitSettings: CommonSettings {
    enum OnBusy {
        case queue, each, drop, restart
    }

    var common = CommonOptions()

    var count: Int?
    var follows = false
    var wantsAll = false
    var timeout: Duration?
    /// How long no notification must come before those that have come are handled together.
    var settle: Duration?
    /// Whether to wait for a bus that does not exist yet.
    var retries = false
    /// Whether to exit once the bus has ended.
    var exitsWithBus = false

    var isJSON = false
    var format: RecordFormat?
    var endsWithNull = false

    var readyDescriptor: Int32?
    var readyFile: Argument?
    var then: Argument?

    var onBusy: OnBusy?
    /// The command to run for each notification, with its arguments.
    var command: [Argument]?

    /// Whether notifications are written to standard output. With a command its own output matters, so names are
    /// printed only on request.
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
            throw UsageError("--count and --follow can't be used together")
        }
        if wantsAll && (count != nil || follows) {
            throw UsageError("--all and \(follows ? "--follow" : "--count") can't be used together")
        }
        if isJSON && format != nil {
            throw UsageError("--json and --format can't be used together")
        }
        if common.verbosity == .quiet && shapesRecords {
            throw UsageError("--quiet prints no names, so it can't be used with --json, --format or --null")
        }
        if let command, command.isEmpty {
            throw UsageError("no command after '--'")
        }
        if onBusy != nil && command == nil {
            throw UsageError("--on-busy requires a command after '--'")
        }
    }
}
