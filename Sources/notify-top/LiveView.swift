// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyCore

/// The view, which redraws itself when something has changed, and sleeps otherwise.
struct LiveView {
    /// Nobody reads faster than ten times a second.
    private static let pause: Int64 = 100_000_000

    private let signals: Signals
    private var bus: NotifyCenter.Bus
    private let buses: [NotifyCenter.Bus]
    private var feed: Feed
    private var model: Model
    private var part = Page.Part.both
    private var lastDrawing: Int64 = 0
    private var isDirty = true
    private var readsKeys = isatty(STDIN_FILENO) == 1
    private var note = ""
    /// Whether a rate is displayed, which decreases by itself.
    private var isMoving = false

    init(_ settings: TopSettings) throws(CommandFailure) {
        let bus = settings.common.notifyBus
        self.bus = bus
        buses = [.session, .system].contains(bus) ? [.session, .system] : [bus, .session, .system]
        feed = try Feed(bus)
        model = Model(order: settings.order, start: Clock.monotonic, isInSandbox: !bus.isWhole)
        note = feed.obstacle ?? ""
        signals = try Signals(and: [SIGWINCH, SIGTSTP])
    }

    mutating func run() throws(CommandFailure) -> Signals.Ending {
        var screen = Screen()
        defer { screen.leave() }
        while true {
            let ready = feed.sleep(until: nextDrawing, beside: [signals.descriptor, readsKeys ? STDIN_FILENO : -1])
            while let signal = signals.next() {
                switch signal.number {
                case SIGCHLD: continue
                case SIGWINCH: isDirty = true
                case SIGTSTP:
                    // ^Z: the shell has the terminal until this continues.
                    screen.leave()
                    raise(SIGSTOP)
                    screen = Screen()
                    isDirty = true
                default: return .signal(signal.number)
                }
            }
            if ready[1] {
                guard let keys = screen.keys() else {
                    readsKeys = false
                    isDirty = true
                    continue
                }
                for key in keys where !handle(key) { return .code(.done) }
            }
            if feed.take(into: &model) { isDirty = true }
            let now = Clock.monotonic
            if isMoving, now - lastDrawing >= 1_000_000_000 { isDirty = true }
            if isDirty, now - lastDrawing >= LiveView.pause {
                // A terminal that takes no output, as after ^S, must not keep signals and keys waiting.
                switch screen.condition {
                case .takesOutput: draw(on: screen, now)
                case .blocked: lastDrawing = now
                // The kernel sends SIGHUP only if this is its controlling terminal.
                case .gone: return .signal(SIGHUP)
                }
            }
        }
    }

    /// When to check the clock again; nil while nothing changes.
    private var nextDrawing: Deadline? {
        let now = Clock.monotonic
        if isDirty { return Deadline(after: .nanoseconds(max(0, lastDrawing + LiveView.pause - now))) }
        return isMoving ? Deadline(after: .nanoseconds(max(0, lastDrawing + 1_000_000_000 - now))) : nil
    }

    private mutating func draw(on screen: Screen, _ now: Int64) {
        let size = Terminal.size ?? (80, 24)
        let page = Page(model, now: now, part: part)
        let name: String =
            switch bus.kind {
            case .session: "session bus"
            case .system: "system bus"
            case .address(let address): Printable.text(address)
            }
        let program = "notify-top: "
        let summary = "; " + page.summary
        // An address may be long, and what follows it matters more.
        let room = max(12, size.columns - program.count - summary.count)
        let keys = "sorted by \(model.order.rawValue)  [s]ort [Tab] part [b]us [r]eset [q]uit"
        let head =
            [
                String((program + TextTable.shortened(name, to: room) + summary).prefix(size.columns)),
                String(keys.prefix(size.columns)),
            ] + LiveView.lines(of: note, width: size.columns)
        let left = max(0, size.lines - head.count)
        let lines = head + page.lines(width: size.columns, height: left, isColored: Terminal.hasColors)
        screen.draw(Array(lines.prefix(size.lines)))
        lastDrawing = now
        isDirty = false
        isMoving = model.isMoving(at: now)
    }

    /// A note on as many lines as it takes, or else an empty line.
    private static func lines(of note: String, width: Int) -> [String] {
        var lines: [String] = []
        var rest = Printable.text(note)[...]
        while rest.count > width, width > 0 {
            let end = rest.prefix(width + 1).lastIndex(of: " ") ?? rest.index(rest.startIndex, offsetBy: width)
            lines.append(String(rest[..<end]))
            rest = rest[end...].drop { $0 == " " }
        }
        return lines + [String(rest)]
    }

    /// - Returns: false if the key quits.
    private mutating func handle(_ key: UInt8) -> Bool {
        isDirty = true
        switch key {
        case UInt8(ascii: "q"): return false
        case UInt8(ascii: "s"): model.order = model.order.next
        case UInt8(ascii: "\t"): part = part.next
        case UInt8(ascii: "r"): model.forgetCounts(at: Clock.monotonic)
        case UInt8(ascii: "b"): changeBus()
        default: isDirty = false
        }
        return true
    }

    /// From the session bus to the system bus, and to the one given at the start if it is neither.
    private mutating func changeBus() {
        let next = (buses.firstIndex(of: bus) ?? 0) + 1
        let other = buses[next % buses.count]
        do throws(CommandFailure) {
            feed = try Feed(other)
            bus = other
            note = feed.obstacle ?? ""
            model = Model(order: model.order, start: Clock.monotonic, isInSandbox: !other.isWhole)
        } catch {
            note = error.message
        }
    }
}
