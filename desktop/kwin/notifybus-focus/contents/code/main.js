// SPDX-License-Identifier: Apache-2.0
//
// Reports to the lifecycle agent which process has the focus, 0 for none, with SetForeground of org.notifybus.Agent1.
// Nothing here waits for an answer. If no agent is running none is started. An agent that starts later invokes the
// shortcut, which needs no key.

"use strict";

var agent = "org.notifybus.Agent1";

function report(window) {
    // The desktop and its panels don't count as programs with the focus.
    var pid = window && !window.desktopWindow && !window.dock && window.pid > 0 ? window.pid : 0;
    callDBus("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "NameHasOwner", agent,
        function (runs) {
            if (runs) {
                callDBus(agent, "/org/notifybus/Agent1", agent, "SetForeground", pid);
            }
        });
}

// Plasma 6 calls them windows, Plasma 5 clients.
(workspace.windowActivated || workspace.clientActivated).connect(report);

function reportActive() {
    report(workspace.activeWindow || workspace.activeClient || null);
}
registerShortcut("NotifyBus focus", "Report to NotifyBus which program has the focus", "", reportActive);
reportActive();
