// SPDX-License-Identifier: Apache-2.0

// The table of the names.
extension SystemEvent {
    /// The source that detects the event. The raw value is the word used by `ignore =` in agent.conf.
    package enum Source: String, CaseIterable, Sendable {
        case timezone, clock, hostname, mounts, network, dns, memory, power, profile, sleep, users
        case accounts, locale, locker, logind, appearance, focus, packages

        /// Whether only a session's agent has it.
        package var isOfSession: Bool { [.locker, .logind, .appearance, .focus].contains(self) }
    }

    package static let all: [SystemEvent] = machine + files + power + machineStates + session + unposted

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
                + "than lo is up and running"
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

    private static let powerBits = "bit 16 on external power, bit 17 while the battery is being charged"

    private static let power: [SystemEvent] = [
        SystemEvent(
            "com.apple.system.powersources",
            .power,
            "kNotifyBusPowerSources",
            "One of the six names that begin with this one was posted."
        ),
        SystemEvent(
            "com.apple.system.powersources.source",
            .power,
            "kNotifyBusPowerSource",
            "External power came or went.",
            state: "1 on external power"
        ),
        SystemEvent(
            "com.apple.system.powersources.percent",
            .power,
            "kNotifyBusPowerPercent",
            "The charge of the battery changed, or external power came or went.",
            state:
                "the charge in percent in bits 0 to 7; \(powerBits), bit 19 if there is a battery, bit 21 when it is full, "
                + "bit 24 when the charge is critical"
        ),
        SystemEvent(
            "com.apple.system.powersources.timeremaining",
            .power,
            "kNotifyBusTimeRemaining",
            "The estimate of how long the battery lasts changed.",
            state:
                "the minutes in bits 0 to 15; \(powerBits), bit 18 if the minutes are unknown, bit 19 always, bit 22 with "
                + "a battery, bit 23 with an uninterruptible power supply; in bits 56 to 63 1 on external power, 2 on "
                + "battery, 3 on such a supply"
        ),
        SystemEvent(
            "com.apple.system.powersources.lowbattery",
            .power,
            "kNotifyBusLowBattery",
            "The battery charge became low."
        ),
        SystemEvent(
            "com.apple.system.powersources.criticallevel",
            .power,
            "kNotifyBusCriticalLevel",
            "The battery charge became critical, or is no longer critical."
        ),
        SystemEvent(
            "com.apple.system.powersources.attach",
            .power,
            "kNotifyBusPowerAttach",
            "A battery or another power source was attached or removed."
        ),
        SystemEvent(
            "com.apple.system.powermanagement.clamshellstate",
            .power,
            "kNotifyBusLid",
            "The lid was opened or closed.",
            state: "1 while it is closed"
        ),
        SystemEvent(
            "com.apple.system.lowpowermode",
            .profile,
            "kNotifyBusLowPowerMode",
            "The power-saver profile was turned on or off.",
            state: "1 while it is on"
        ),
        SystemEvent(
            "com.apple.system.thermalpressurelevel",
            .profile,
            "kNotifyBusThermalPressure",
            "The machine began to run slower because of heat, or stopped doing so.",
            state: "2 while it does, which is Darwin's level \"heavy\""
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
            "The machine is about to sleep; it waits briefly for observers of this name and for what launch.d starts.",
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
            "org.notifybus.system.packages",
            .packages,
            "kNotifyBusPackages",
            "Packages of dpkg or rpm were installed, removed or upgraded."
        ),
        SystemEvent(
            "org.notifybus.system.sessions",
            .users,
            "kNotifyBusSessions",
            "A user logged in or out.",
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
        SystemEvent(
            appearance,
            .appearance,
            "kNotifyBusAppearance",
            "The preference for dark or light windows changed.",
            state: "1 for dark, 2 for light, 0 for no preference"
        ),
        SystemEvent(alias: "AppleInterfaceThemeChangedNotification", of: appearance, .appearance),
        SystemEvent(
            focus,
            .focus,
            "kNotifyBusFocus",
            "The focus moved to another program, or away. Not for programs in sandboxes.",
            state: "the process ID of the program that has the focus; 0 if none has it, or if that is unknown"
        ),
    ]

    private static let appearance: NotifyName = "org.notifybus.session.appearance"

    package static let focus: NotifyName = "org.notifybus.session.focus"

    private static let noDiskEvent =
        "The kernel reports no event when a file system fills up. A timer that checks can post it."

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
