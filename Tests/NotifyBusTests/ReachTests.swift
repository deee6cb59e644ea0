// SPDX-License-Identifier: Apache-2.0

import NotifyBus
import NotifyCore
import Testing

/// What `/.flatpak-info` means for a center; the commands' tests use a real one.
@Suite struct ReachTests {
    @Test(arguments: [
        ("[Context]\nsockets=x11;session-bus;\n", true, false),
        ("[Context]\nsockets=system-bus;session-bus", true, true),
        ("[Context]\nsockets=x11;wayland;pulseaudio;\n", false, false),
        ("[Context]\nshared=network;\n[Session Bus Policy]\norg.example.A=talk\n", false, false),
        // Another group's key, a longer word, and a revoked permission don't count.
        ("[Context X]\nsockets=session-bus;\n", false, false), ("[Context]\nsockets=session-bus-x;\n", false, false),
        ("[Context]\nsockets=!session-bus;\n", false, false), ("", false, false),
    ])
    func `a Flatpak hears everyone on a bus to which it has full access`(text: String, session: Bool, system: Bool) {
        let info = FlatpakInfo(text)
        #expect((info.reach(on: .session) == .everyone) == session)
        #expect((info.reach(on: .system) == .everyone) == system)
        // Flatpak has proxies for these two only.
        #expect(info.reach(on: .address("unix:path=/nonexistent/bus")) == .everyone)
    }

    @Test func `outside a sandbox everyone is heard`() {
        #expect(NotifyCenter.session.reach == .everyone)
        #expect(NotifyCenter.system.reach == .everyone)
    }
}
