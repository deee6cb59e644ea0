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
            case nil: "Another name for \(original)."
            case 0: "Posted with \(original) when its state becomes 0."
            default: "Posted with \(original) when its state becomes 1."
            }
        self.init(name, source, nil, meaning, state: "the same as of that name", original: original, edge: edge)
    }

    package static let all: [SystemEvent] = machine + files + machineStates + session + unposted

    private static let machine: [SystemEvent] = [
        SystemEvent("com.apple.system.timezone", .timezone, "kNotifyTimeZoneChange", "The time zone was changed."),
        SystemEvent(
            "com.apple.system.clock_set",
            .clock,
            "kNotifyClockSet",
            "The clock was set, or the machine woke up. Slewing by NTP does not count."
        ),
        SystemEvent("com.apple.system.hostname", .hostname, "kNotifySCHostNameChange", "The host's name has changed."),
        SystemEvent("com.apple.system.kernel.mount", .mounts, "kNotifyVFSMount", "A file system was mounted."),
        SystemEvent("com.apple.system.kernel.unmount", .mounts, "kNotifyVFSUnmount", "A file system was unmounted."),
        SystemEvent(
            "com.apple.system.kernel.mountupdate",
            .mounts,
            "kNotifyVFSUpdate",
            "The options of a mounted file system were changed."
        ),
        SystemEvent(
            "com.apple.system.config.network_change",
            .network,
            "kNotifySCNetworkChange",
            "An address, a default route or the set of interfaces that are up has changed.",
            state: "the sum of 1 if there is a default route of IPv4, 2 if there is one of IPv6, and 4 if an interface "
                + "other than lo is up"
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
            "The servers or domains of DNS have changed."
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
            "Users, groups, hosts or services have changed in /etc."
        ),
        SystemEvent(
            "com.apple.system.DirectoryService.InvalidateCache.user",
            .accounts,
            "kNotifyDSCacheInvalidationUser",
            "/etc/passwd has changed."
        ),
        SystemEvent(
            "com.apple.system.DirectoryService.InvalidateCache.group",
            .accounts,
            "kNotifyDSCacheInvalidationGroup",
            "/etc/group has changed."
        ),
        SystemEvent(
            "com.apple.system.DirectoryService.InvalidateCache.host",
            .accounts,
            "kNotifyDSCacheInvalidationHost",
            "/etc/hosts has changed."
        ),
        SystemEvent(
            "com.apple.system.DirectoryService.InvalidateCache.service",
            .accounts,
            "kNotifyDSCacheInvalidationService",
            "/etc/services or /etc/protocols has changed."
        ),
        SystemEvent("com.apple.system.info:/etc/hosts", .accounts, nil, "/etc/hosts has changed."),
        SystemEvent("com.apple.system.info:/etc/services", .accounts, nil, "/etc/services has changed."),
        SystemEvent("com.apple.system.info:/etc/protocols", .accounts, nil, "/etc/protocols has changed."),
        SystemEvent(
            "org.notifybus.system.locale",
            .locale,
            "kNotifyBusLocale",
            "The machine's language was changed, in /etc/locale.conf or /etc/default/locale."
        ),
        SystemEvent(
            "org.notifybus.system.keyboard",
            .locale,
            "kNotifyBusKeyboard",
            "The machine's keyboard layout was changed, in /etc/default/keyboard, /etc/vconsole.conf or "
                + "/etc/X11/xorg.conf.d/00-keyboard.conf."
        ),
    ]

    private static let machineStates: [SystemEvent] = [
        SystemEvent(
            "org.notifybus.system.memory",
            .memory,
            "kNotifyBusMemoryPressure",
            "How much programs wait for memory has changed.",
            state: "0 for not at all, 1 if some of them do, and 2 if all of them do at times"
        ),
        SystemEvent(
            "org.notifybus.system.willsleep",
            .sleep,
            "kNotifyBusWillSleep",
            "The machine is about to sleep; it waits for those who are told.",
            state: "1 from then on until it has woken"
        ),
        SystemEvent("org.notifybus.system.didwake", .sleep, "kNotifyBusDidWake", "The machine has woken from sleep."),
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
            "Somebody has logged in or out.",
            state: "the number of sessions that people work in"
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
            "The session came to the front, or another one or a console did.",
            state: "1 while it is in front"
        ),
        SystemEvent(
            "org.notifybus.session.idle",
            .logind,
            "kNotifyBusIdle",
            "Nobody has used the session for a while, or somebody does again.",
            state: "1 while it is idle"
        ),
    ]

    private static let noDiskEvent =
        "No event of the kernel says how full a file system is; notifybus-events(7) has a timer that looks."

    /// Names of Darwin's headers that are never posted here.
    private static let unposted: [SystemEvent] = [
        SystemEvent("com.apple.system.lowdiskspace", nil, "kNotifyVFSLowDiskSpace", noDiskEvent),
        SystemEvent("com.apple.system.lowdiskspace.system", nil, "kNotifyVFSLowDiskSpaceRootFS", noDiskEvent),
        SystemEvent("com.apple.system.lowdiskspace.user", nil, "kNotifyVFSLowDiskSpaceOtherFS", noDiskEvent),
        SystemEvent(
            "com.apple.system.logger.message",
            nil,
            "kNotifyASLDBUpdate",
            "That would be a post for each line of the log; 'journalctl -f' follows it."
        ),
    ]
}
