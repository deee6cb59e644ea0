// SPDX-License-Identifier: Apache-2.0

/// A name that the agent posts when something happens to the machine or the session.
///
/// ``all`` is the single table of them: the agent's sources, notifybus-events(7), `<notify_keys.h>`, the constants of
/// `DarwinNotify` and the completion of names are all derived from it.
package struct SystemEvent: Sendable {
    /// The source that detects the event. The raw value is the word used by `ignore =` in agent.conf.
    package enum Source: String, CaseIterable, Sendable {
        case timezone, clock, hostname, mounts, network, dns, memory, sleep, users, accounts, locale
        case locker, logind

        /// Whether only a session's agent has this source.
        package var isOfSession: Bool { self == .locker || self == .logind }
    }

    package let name: NotifyName
    /// nil if the name is never posted here.
    package let source: Source?
    /// The C macro and Swift constant; nil if there is none.
    package let key: String?
    /// The name for which this is an alias: it is posted together with that one, while somebody observes the alias
    /// itself.
    package let original: NotifyName?
    /// For an alias: post it only when the state becomes this value.
    package let edge: UInt64?
    /// What has happened when the name is posted, as a sentence; or why it is never posted.
    package let meaning: String
    /// What its state means; empty if it is always 0.
    package let state: String

    private init(
        _ name: NotifyName,
        _ source: Source?,
        _ key: String?,
        _ meaning: String,
        state: String = "",
        original: NotifyName? = nil,
        edge: UInt64? = nil
    ) {
        self.name = name
        self.source = source
        self.key = key
        self.meaning = meaning
        self.state = state
        self.original = original
        self.edge = edge
    }

    private init(alias name: NotifyName, of original: NotifyName, _ source: Source, when edge: UInt64? = nil) {
        let meaning =
            switch edge {
            case nil: "An alias of \(original)."
            case 0: "Posted along with \(original) when its state becomes 0."
            default: "Posted along with \(original) when its state becomes 1."
            }
        self.init(name, source, nil, meaning, state: "that of the other name", original: original, edge: edge)
    }

    package static let all: [SystemEvent] = machine + files + machineStates + session + unposted

    private static let machine: [SystemEvent] = [
        SystemEvent("com.apple.system.timezone", .timezone, "kNotifyTimeZoneChange", "The time zone changed."),
        SystemEvent(
            "com.apple.system.clock_set",
            .clock,
            "kNotifyClockSet",
            "The clock was set, or the machine woke up. Slewing by NTP does not count."
        ),
        SystemEvent("com.apple.system.hostname", .hostname, "kNotifySCHostNameChange", "The host name changed."),
        SystemEvent("com.apple.system.kernel.mount", .mounts, "kNotifyVFSMount", "A file system was mounted."),
        SystemEvent("com.apple.system.kernel.unmount", .mounts, "kNotifyVFSUnmount", "A file system was unmounted."),
        SystemEvent(
            "com.apple.system.kernel.mountupdate",
            .mounts,
            "kNotifyVFSUpdate",
            "The options of a mounted file system changed."
        ),
        SystemEvent(
            "com.apple.system.config.network_change",
            .network,
            "kNotifySCNetworkChange",
            "An address, a default route or the set of interfaces that are up changed.",
            state: "the sum of 1 for an IPv4 default route, 2 for an IPv6 default route, and 4 if an interface other "
                + "than lo is up"
        ),
        SystemEvent(
            alias: "com.apple.system.config.network_change.nwi",
            of: "com.apple.system.config.network_change",
            .network
        ),
        SystemEvent(
            "com.apple.system.config.network_change.dns",
            .dns,
            "kNotifyBusDNSChange",
            "The DNS servers or domains changed."
        ),
        SystemEvent(
            alias: "com.apple.system.SystemConfiguration.dns_configuration",
            of: "com.apple.system.config.network_change.dns",
            .dns
        ),
    ]

    private static let files: [SystemEvent] = [
        SystemEvent(
            "com.apple.system.DirectoryService.InvalidateCache",
            .accounts,
            "kNotifyDSCacheInvalidation",
            "Users, groups, hosts or services changed in /etc."
        ),
        SystemEvent(
            "com.apple.system.DirectoryService.InvalidateCache.user",
            .accounts,
            "kNotifyDSCacheInvalidationUser",
            "/etc/passwd changed."
        ),
        SystemEvent(
            "com.apple.system.DirectoryService.InvalidateCache.group",
            .accounts,
            "kNotifyDSCacheInvalidationGroup",
            "/etc/group changed."
        ),
        SystemEvent(
            "com.apple.system.DirectoryService.InvalidateCache.host",
            .accounts,
            "kNotifyDSCacheInvalidationHost",
            "/etc/hosts changed."
        ),
        SystemEvent(
            "com.apple.system.DirectoryService.InvalidateCache.service",
            .accounts,
            "kNotifyDSCacheInvalidationService",
            "/etc/services or /etc/protocols changed."
        ),
        SystemEvent("com.apple.system.info:/etc/hosts", .accounts, nil, "/etc/hosts changed."),
        SystemEvent("com.apple.system.info:/etc/services", .accounts, nil, "/etc/services changed."),
        SystemEvent("com.apple.system.info:/etc/protocols", .accounts, nil, "/etc/protocols changed."),
        SystemEvent(
            "org.notifybus.system.locale",
            .locale,
            "kNotifyBusLocale",
            "The system locale changed, in /etc/locale.conf or /etc/default/locale."
        ),
        SystemEvent(
            "org.notifybus.system.keyboard",
            .locale,
            "kNotifyBusKeyboard",
            "The system keyboard layout changed, in /etc/default/keyboard, /etc/vconsole.conf or "
                + "/etc/X11/xorg.conf.d/00-keyboard.conf."
        ),
    ]

    private static let machineStates: [SystemEvent] = [
        SystemEvent(
            "org.notifybus.system.memory",
            .memory,
            "kNotifyBusMemoryPressure",
            "The memory pressure changed.",
            state: "0 if no program has to wait for memory, 1 if some do, and 2 if at times all do"
        ),
        SystemEvent(
            "org.notifybus.system.willsleep",
            .sleep,
            "kNotifyBusWillSleep",
            "The machine is about to sleep; it waits briefly for observers of this name.",
            state: "1 until the machine has woken up"
        ),
        SystemEvent("org.notifybus.system.didwake", .sleep, "kNotifyBusDidWake", "The machine woke up from sleep."),
        SystemEvent(
            "org.notifybus.system.willshutdown",
            .sleep,
            "kNotifyBusWillShutdown",
            "The machine is about to shut down or restart.",
            state: "1 from then on"
        ),
        SystemEvent(
            "org.notifybus.system.sessions",
            .users,
            "kNotifyBusSessions",
            "Somebody logged in or out.",
            state: "the number of user sessions"
        ),
    ]

    private static let lock: NotifyName = "org.notifybus.session.lock"

    private static let session: [SystemEvent] = [
        SystemEvent(
            lock,
            .locker,
            "kNotifyBusLock",
            "The screen was locked or unlocked.",
            state: "1 while it is locked"
        ),
        SystemEvent(alias: "com.apple.springboard.lockstate", of: lock, .locker),
        SystemEvent(alias: "com.apple.screenIsLocked", of: lock, .locker, when: 1),
        SystemEvent(alias: "com.apple.screenIsUnlocked", of: lock, .locker, when: 0),
        SystemEvent(alias: "com.apple.sessionagent.screenIsLocked", of: lock, .locker, when: 1),
        SystemEvent(alias: "com.apple.sessionagent.screenIsUnlocked", of: lock, .locker, when: 0),
        SystemEvent(
            "org.notifybus.session.active",
            .logind,
            "kNotifyBusActive",
            "The session became active or inactive, as another session or a console came to the front.",
            state: "1 while it is active"
        ),
        SystemEvent(
            "org.notifybus.session.idle",
            .logind,
            "kNotifyBusIdle",
            "The session became idle, or is in use again.",
            state: "1 while it is idle"
        ),
    ]

    private static let noDiskEvent =
        "The kernel reports no event when a file system fills up; notifybus-events(7) shows a timer that checks."

    /// Names of Darwin's headers that are never posted here.
    private static let unposted: [SystemEvent] = [
        SystemEvent("com.apple.system.lowdiskspace", nil, "kNotifyVFSLowDiskSpace", noDiskEvent),
        SystemEvent("com.apple.system.lowdiskspace.system", nil, "kNotifyVFSLowDiskSpaceRootFS", noDiskEvent),
        SystemEvent("com.apple.system.lowdiskspace.user", nil, "kNotifyVFSLowDiskSpaceOtherFS", noDiskEvent),
        SystemEvent(
            "com.apple.system.logger.message",
            nil,
            "kNotifyASLDBUpdate",
            "It would be posted for every line of the log; use 'journalctl -f' instead."
        ),
    ]
}
