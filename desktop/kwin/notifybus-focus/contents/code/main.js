// SPDX-License-Identifier: Apache-2.0
//
// Tells the lifecycle agent which process has the focus, 0 for none: SetForeground of org.notifybus.Agent1. Nothing here
// waits for an answer, and an agent that does not run is not started: it hears of the next change.

"use strict";

var agent = "org.notifybus.Agent1";

function tell(window) {
    // Behind the desktop and its panels is no program that has the focus.
    var pid = window && !window.desktopWindow && !window.dock && window.pid > 0 ? window.pid : 0;
    callDBus("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "NameHasOwner", agent,
        function (runs) {
            if (runs) {
                callDBus(agent, "/org/notifybus/Agent1", agent, "SetForeground", pid);
            }
        });
}

// Plasma 6 speaks of windows, Plasma 5 of clients.
(workspace.windowActivated || workspace.clientActivated).connect(tell);
tell(workspace.activeWindow || workspace.activeClient || null);
