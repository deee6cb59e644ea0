// SPDX-License-Identifier: Apache-2.0

import CXcb
import NotifyCoordinator
import NotifyCore

/// The focus on an X display: the process of `_NET_ACTIVE_WINDOW`, which every window manager keeps on the root window.
/// See Extended Window Manager Hints.
///
/// However fast the focus changes, one question to the server is under way, and the last answer is what counts.
final class X11Source: Source {
    private let display: String
    private let limit: Int64
    /// Whether to report when the window in front becomes fullscreen.
    private let seesFullscreen: Bool
    private var server: OpaquePointer?
    private weak var driver: SourceDriver?
    private var last: (process: Int64, isFullscreen: Bool)?
    private var pace = Pace()
    private var timer: Int?

    /// - Parameter limit: after how long the thread's watcher ends its wait for an answer, in milliseconds.
    init(display: String, seesFullscreen: Bool = false, limit: Int64 = BusLink.usualAnswerLimit) {
        (self.display, self.seesFullscreen, self.limit) = (display, seesFullscreen, limit)
    }

    /// The source on a thread of its own, since libxcb blocks.
    static func onThread(
        display: String,
        seesFullscreen: Bool,
        limit: Int64 = BusLink.usualAnswerLimit
    ) -> ThreadedSource {
        ThreadedSource("x11", asking: (title(display), limit)) {
            X11Source(display: display, seesFullscreen: seesFullscreen, limit: limit)
        }
    }

    private static func title(_ display: String) -> String { "the X server \(display)" }

    /// Why the display of this environment can't be watched; nil if it can.
    static func obstacle(_ environment: [String: String]) -> String? {
        if environment["DISPLAY"] == nil { return "$DISPLAY is not set" }
        // Its X server has only some of the windows: while another one has the focus, it would report that none has it.
        if environment["WAYLAND_DISPLAY"] != nil || environment["XDG_SESSION_TYPE"] == "wayland" {
            return "this is a Wayland session: its X server does not see every window"
        }
        return nil
    }

    func begin(on driver: SourceDriver) throws(SourceFault) {
        if let reason = x11_load() { throw SourceFault(String(cString: reason), isPassing: false) }
        let began = MonotonicTime.now
        guard let server = driver.loop.thread.guarding(nil, asking: X11Source.greeting, { x11_open(display) }) else {
            throw fault("can't be reached", X11Source.greeting, since: began)
        }
        (self.server, self.driver) = (server, driver)
        driver.loop.watch(x11_descriptor(server)) { [weak self] in self?.takeEvents() }
        follow(mustAsk: true, follows: true)
    }

    func end() {
        guard let server else { return }
        driver?.loop.forget(x11_descriptor(server))
        driver?.loop.cancel(timer)
        x11_close(server)
        (self.server, driver, last, timer) = (nil, nil, nil, nil)
    }

    private func takeEvents() { follow(mustAsk: false) }

    /// Looks at once or, if it has looked often, after a pause, in which whatever happens needs no look of its own.
    ///
    /// - Returns: whether the server is there.
    private func lookSoon(_ server: OpaquePointer, _ driver: SourceDriver) -> Bool {
        if timer != nil { return true }
        guard let due = pace.due else {
            pace.pay(Pace.pause)
            return look(server, driver)
        }
        timer = driver.loop.at(MonotonicTime(nanoseconds: due)) { [weak self] in
            self?.timer = nil
            self?.follow(mustAsk: true)
        }
        return true
    }

    /// Looks until nothing has happened meanwhile: events that come with the answers are in libxcb's own queue, and
    /// poll(2) does not see them.
    private func follow(mustAsk: Bool, follows: Bool = false) {
        guard let server, let driver else { return }
        let began = MonotonicTime.now
        let isThere = driver.loop.thread.guarding(x11_descriptor(server), asking: X11Source.question) {
            if follows, x11_follow(server, seesFullscreen ? 1 : 0) != 0 { return false }
            if mustAsk, !lookSoon(server, driver) { return false }
            while true {
                let change = x11_take_events(server)
                if change <= 0 { return change == 0 }
                if !lookSoon(server, driver) { return false }
            }
        }
        if !isThere { driver.fail(fault("went away", X11Source.question, since: began)) }
    }

    private static let greeting = "connection setup"
    private static let question = "_NET_ACTIVE_WINDOW"

    /// - Parameter time: when the question was asked.
    private func fault(_ what: String, _ question: String, since time: MonotonicTime) -> SourceFault {
        let title = X11Source.title(display)
        return time + limit <= .now ? .silence(title, question, limit) : SourceFault("\(title) \(what)")
    }

    /// - Returns: whether the server is there.
    private func look(_ server: OpaquePointer, _ driver: SourceDriver) -> Bool {
        let isManaged = x11_has_window_manager(server) != 0
        let process = x11_active_process(server)
        guard process >= 0 else { return false }
        guard isManaged else {
            driver.isOff("no window manager keeps _NET_ACTIVE_WINDOW")
            last = nil
            return true
        }
        let isFullscreen = seesFullscreen && x11_active_is_fullscreen(server) != 0
        guard last?.process != process || last?.isFullscreen != isFullscreen else {
            driver.isLive()
            return true
        }
        last = (process, isFullscreen)
        let window = DesktopWindow(
            pid: Int32(truncatingIfNeeded: process),
            application: String(cString: x11_active_class(server)),
            isFullscreen: isFullscreen
        )
        driver.reportFocus(process == 0 ? nil : window)
        return true
    }
}
