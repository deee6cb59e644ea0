// SPDX-License-Identifier: Apache-2.0

import NotifyBus
import NotifyCore
import Testing

private typealias NotifyCenter = NotifyBus.NotifyCenter

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
        #expect((info.passage(on: .session) == .open) == session)
        #expect((info.passage(on: .system) == .open) == system)
        #expect(info.passage(on: .session) != .relay && info.passage(on: .system) != .relay)
        // Flatpak stands in front of these two only.
        #expect(info.passage(on: .address("unix:path=/nonexistent/bus")) == .open)
    }

    @Test(arguments: [
        ("[Session Bus Policy]\norg.notifybus.Relay1=talk\n", true, false),
        ("[System Bus Policy]\norg.example.A=talk\norg.notifybus.Relay1=own\n", false, true),
        ("[Session Bus Policy]\norg.notifybus.*=talk\n[System Bus Policy]\norg.*=talk\n", true, true),
        // To see it is not enough, and other names are others.
        ("[Session Bus Policy]\norg.notifybus.Relay1=see\n", false, false),
        ("[Session Bus Policy]\norg.notifybus.Relay1=none\n", false, false),
        ("[Session Bus Policy]\norg.notifybus.Agent1=talk\norg.notifybus.Relay12=talk\n", false, false),
        ("[Session Bus Policy]\norg.notify.*=talk\n", false, false),
        ("[Context]\norg.notifybus.Relay1=talk\n", false, false),
    ])
    func `a Flatpak that may talk to the relay hears by it`(text: String, session: Bool, system: Bool) {
        let info = FlatpakInfo(text)
        #expect((info.passage(on: .session) == .relay) == session)
        #expect((info.passage(on: .system) == .relay) == system)
        // With access to the whole bus no relay is needed.
        #expect(FlatpakInfo("[Context]\nsockets=session-bus;\n" + text).passage(on: .session) == .open)
    }

    @Test func `outside a sandbox everyone is heard`() {
        #expect(NotifyCenter.session.visibility == .everyone)
        #expect(NotifyCenter.system.visibility == .everyone)
    }
}
