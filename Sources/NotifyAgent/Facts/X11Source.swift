// SPDX-License-Identifier: Apache-2.0

import CXcb
import Glibc
import NotifyCoordinator
import NotifyCore

/// The focus on an X display: the process of `_NET_ACTIVE_WINDOW`, which every window manager keeps on the root window.
/// See Extended Window Manager Hints.
///
/// However fast the focus changes, one question to the server is under way, and the last answer is what counts.
final class X11Source: LifecycleSource {
    private let display: String
    private let outlet: FactOutlet
    private let thread = SourceThread()

    init(display: String, _ outlet: FactOutlet) {
        self.display = display
        self.outlet = outlet
    }

    /// What speaks against watching the display of this environment; nil if nothing does.
    static func obstacle(_ environment: [String: String]) -> String? {
        if environment["DISPLAY"] == nil { return "$DISPLAY is not set" }
        // Its X server has only some of the windows, and would take the others for nobody.
        if environment["WAYLAND_DISPLAY"] != nil || environment["XDG_SESSION_TYPE"] == "wayland" {
            return "this is a Wayland session: its X server does not see every window"
        }
        return nil
    }

    func start() {
        if !thread.start("x11", { self.run($0) }) { outlet.say(.off("no thread could be started")) }
    }

    func stop() {
        outlet.close()
        thread.stop()
    }

    private func run(_ thread: SourceThread) {
        if let reason = x11_load() { return outlet.say(.off(String(cString: reason))) }
        var retry = BackOff.ofSource
        while !thread.isStopping {
            if let server = x11_open(display) {
                retry.reset()
                thread.guarding(x11_descriptor(server)) { follow(server, thread) }
                x11_close(server)
                outlet.say(.off("the X server \(display) went away"))
            } else {
                outlet.say(.off("the X server \(display) can't be reached"))
            }
            if case .stopped = thread.wait(milliseconds: Int32(retry.next())) { return }
        }
    }

    /// Comes back when the server is gone, or the thread is to stop.
    private func follow(_ server: OpaquePointer, _ thread: SourceThread) {
        guard x11_follow(server) == 0 else { return }
        var last: Int64?
        var mustAsk = true
        while true {
            if mustAsk {
                guard let process = look(server) else { return }
                if process != last, process >= 0 { outlet.say(fact(process)) }
                last = process
            }
            // What came with the answers is in libxcb's own queue, and poll(2) does not see it.
            var change = x11_take_events(server)
            if change == 0 {
                guard case .ready = thread.wait(for: x11_descriptor(server)) else { return }
                change = x11_take_events(server)
            }
            if change < 0 { return }
            mustAsk = change > 0
        }
    }

    /// - Returns: the process that has the focus, 0 for none, -1 if nobody says; nil if the server is gone.
    private func look(_ server: OpaquePointer) -> Int64? {
        guard x11_has_window_manager(server) != 0 else {
            let process = x11_active_process(server)
            outlet.say(.off("no window manager keeps _NET_ACTIVE_WINDOW"))
            return process < 0 ? nil : -1
        }
        let process = x11_active_process(server)
        guard process >= 0 else { return nil }
        outlet.say(.live)
        return process
    }

    private func fact(_ process: Int64) -> Fact {
        .focus(process == 0 ? [] : [FocusedProcess(pid: Int32(truncatingIfNeeded: process))])
    }
}
