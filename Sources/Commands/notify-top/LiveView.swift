// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyCore

/// The view, which redraws itself when something has changed, and sleeps otherwise.
struct LiveView {
    /// No reader follows more than ten updates a second.
    private static let pause: Int64 = 100_000_000

    private let signals: Signals
    private var bus: NotifyCenter.Bus
    private let buses: [NotifyCenter.Bus]
    /// The bus that was tried last: one that can't be reached is passed over the next time.
    private var tried: NotifyCenter.Bus
    private var feed: Feed
    private var model: Model
    private var part = Page.Part.both
    private var lastDrawing: Int64 = 0
    private var isDirty = true
    private var readsKeys = isatty(STDIN_FILENO) == 1
    private var note = ""
    /// The bus that is to be shown next, while it is being connected to.
    private var next: (bus: NotifyCenter.Bus, feed: Mailbox<Result<Feed, CommandFailure>>)?
    /// Whether a rate is displayed, which decreases by itself.
    private var isMoving = false

    init(_ settings: TopSettings) throws(CommandFailure) {
        let bus = settings.common.notifyBus
        self.bus = bus
        tried = bus
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
            let ready = feed.sleep(
                until: nextDrawing(on: screen),
                beside: [signals.descriptor, readsKeys ? STDIN_FILENO : -1, next?.feed.descriptor ?? -1]
            )
            while let signal = signals.next() {
                switch signal.number {
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
            if ready[2] { changeBus() }
            if feed.take(into: &model) { isDirty = true }
            let now = Clock.monotonic
            if isMoving, now - lastDrawing >= 1_000_000_000 { isDirty = true }
            if isDirty || screen.isPending, now - lastDrawing >= LiveView.pause {
                // A terminal that takes no output, as after ^S, must not keep signals and keys waiting.
                switch screen.condition {
                case .takesOutput where screen.isPending:
                    screen.flush()
                    lastDrawing = now
                case .takesOutput: draw(on: &screen, now)
                case .blocked: lastDrawing = now
                // The kernel sends SIGHUP only if this is its controlling terminal.
                case .gone: return .signal(SIGHUP)
                }
            }
        }
    }

    /// When to check the clock again; nil while nothing changes.
    private func nextDrawing(on screen: Screen) -> Deadline? {
        let now = Clock.monotonic
        if isDirty || screen.isPending {
            return Deadline(after: .nanoseconds(max(0, lastDrawing + LiveView.pause - now)))
        }
        return isMoving ? Deadline(after: .nanoseconds(max(0, lastDrawing + 1_000_000_000 - now))) : nil
    }

    private mutating func draw(on screen: inout Screen, _ now: Int64) {
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
        case UInt8(ascii: "b"): connect()
        default: isDirty = false
        }
        return true
    }

    /// From the session bus to the system bus, and to the one given at the start if it is neither. A bus may take its
    /// time, and signals and keys must not wait for it.
    private mutating func connect() {
        if next != nil { return }
        let first = (buses.firstIndex(of: tried) ?? 0) + 1
        guard let other = (0..<buses.count).map({ buses[(first + $0) % buses.count] }).first(where: { $0 != bus })
        else { return }
        tried = other
        do {
            let mailbox = try Mailbox<Result<Feed, CommandFailure>>()
            try EngineThread(name: "notify-top") {
                mailbox.put(Result { () throws(CommandFailure) in try Feed(other) })
            }.detach()
            next = (other, mailbox)
        } catch {
            note = "\(error)"
        }
    }

    private mutating func changeBus() {
        guard let (other, mailbox) = next, let result = mailbox.take() else { return }
        next = nil
        isDirty = true
        do throws(CommandFailure) {
            feed = try result.get()
            bus = other
            note = feed.obstacle ?? ""
            model = Model(order: model.order, start: Clock.monotonic, isInSandbox: !other.isWhole)
        } catch {
            note = error.message
        }
    }
}
