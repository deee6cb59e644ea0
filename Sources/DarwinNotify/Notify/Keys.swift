// SPDX-License-Identifier: Apache-2.0

// The names of those that Darwin has are Darwin's.
// swift-format-ignore-file: AlwaysUseLowerCamelCase, LineLength

// Names that are posted when something happens to the machine or the session: notifybus-events(7) says when, and what
// their states say. Made from the table of these names: notify-agent --generate keys.swift

/// The time zone was changed.
public var kNotifyTimeZoneChange: String { "com.apple.system.timezone" }
/// The clock was set, or the machine woke up. Slewing by NTP does not count.
public var kNotifyClockSet: String { "com.apple.system.clock_set" }
/// The host's name has changed.
public var kNotifySCHostNameChange: String { "com.apple.system.hostname" }
/// A file system was mounted.
public var kNotifyVFSMount: String { "com.apple.system.kernel.mount" }
/// A file system was unmounted.
public var kNotifyVFSUnmount: String { "com.apple.system.kernel.unmount" }
/// The options of a mounted file system were changed.
public var kNotifyVFSUpdate: String { "com.apple.system.kernel.mountupdate" }
/// An address, a default route or the set of interfaces that are up has changed.
public var kNotifySCNetworkChange: String { "com.apple.system.config.network_change" }
/// The servers or domains of DNS have changed.
public var kNotifyBusDNSChange: String { "com.apple.system.config.network_change.dns" }
/// Users, groups, hosts or services have changed in /etc.
public var kNotifyDSCacheInvalidation: String { "com.apple.system.DirectoryService.InvalidateCache" }
/// /etc/passwd has changed.
public var kNotifyDSCacheInvalidationUser: String { "com.apple.system.DirectoryService.InvalidateCache.user" }
/// /etc/group has changed.
public var kNotifyDSCacheInvalidationGroup: String { "com.apple.system.DirectoryService.InvalidateCache.group" }
/// /etc/hosts has changed.
public var kNotifyDSCacheInvalidationHost: String { "com.apple.system.DirectoryService.InvalidateCache.host" }
/// /etc/services or /etc/protocols has changed.
public var kNotifyDSCacheInvalidationService: String { "com.apple.system.DirectoryService.InvalidateCache.service" }
/// The machine's language was changed, in /etc/locale.conf or /etc/default/locale.
public var kNotifyBusLocale: String { "org.notifybus.system.locale" }
/// The machine's keyboard layout was changed, in /etc/default/keyboard, /etc/vconsole.conf or /etc/X11/xorg.conf.d/00-keyboard.conf.
public var kNotifyBusKeyboard: String { "org.notifybus.system.keyboard" }
/// How much programs wait for memory has changed.
public var kNotifyBusMemoryPressure: String { "org.notifybus.system.memory" }
/// The machine is about to sleep; it waits for those who are told.
public var kNotifyBusWillSleep: String { "org.notifybus.system.willsleep" }
/// The machine has woken from sleep.
public var kNotifyBusDidWake: String { "org.notifybus.system.didwake" }
/// The machine is about to shut down or restart.
public var kNotifyBusWillShutdown: String { "org.notifybus.system.willshutdown" }
/// Somebody has logged in or out.
public var kNotifyBusSessions: String { "org.notifybus.system.sessions" }
/// The screen was locked or unlocked.
public var kNotifyBusLock: String { "org.notifybus.session.lock" }
/// The session came to the front, or another one or a console did.
public var kNotifyBusActive: String { "org.notifybus.session.active" }
/// Nobody has used the session for a while, or somebody does again.
public var kNotifyBusIdle: String { "org.notifybus.session.idle" }
/// No event of the kernel says how full a file system is; notifybus-events(7) has a timer that looks.
public var kNotifyVFSLowDiskSpace: String { "com.apple.system.lowdiskspace" }
/// No event of the kernel says how full a file system is; notifybus-events(7) has a timer that looks.
public var kNotifyVFSLowDiskSpaceRootFS: String { "com.apple.system.lowdiskspace.system" }
/// No event of the kernel says how full a file system is; notifybus-events(7) has a timer that looks.
public var kNotifyVFSLowDiskSpaceOtherFS: String { "com.apple.system.lowdiskspace.user" }
/// That would be a post for each line of the log; 'journalctl -f' follows it.
public var kNotifyASLDBUpdate: String { "com.apple.system.logger.message" }
