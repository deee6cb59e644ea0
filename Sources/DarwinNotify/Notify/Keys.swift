// SPDX-License-Identifier: Apache-2.0

// Darwin's constants keep Darwin's names.
// swift-format-ignore-file: AlwaysUseLowerCamelCase, LineLength

// Names posted when something happens to the machine or the session: see notifybus-events(7) for when, and what their
// states mean. Generated from the table of these names: notify-agent --generate keys.swift

/// The time zone changed.
public var kNotifyTimeZoneChange: String { "com.apple.system.timezone" }
/// The clock was set, or the machine woke up. Slewing by NTP does not count.
public var kNotifyClockSet: String { "com.apple.system.clock_set" }
/// The host name changed.
public var kNotifySCHostNameChange: String { "com.apple.system.hostname" }
/// A file system was mounted.
public var kNotifyVFSMount: String { "com.apple.system.kernel.mount" }
/// A file system was unmounted.
public var kNotifyVFSUnmount: String { "com.apple.system.kernel.unmount" }
/// The options of a mounted file system changed.
public var kNotifyVFSUpdate: String { "com.apple.system.kernel.mountupdate" }
/// An address, a default route or the set of interfaces that are up changed.
public var kNotifySCNetworkChange: String { "com.apple.system.config.network_change" }
/// The DNS servers or domains changed.
public var kNotifyBusDNSChange: String { "com.apple.system.config.network_change.dns" }
/// Users, groups, hosts or services changed in /etc.
public var kNotifyDSCacheInvalidation: String { "com.apple.system.DirectoryService.InvalidateCache" }
/// /etc/passwd changed.
public var kNotifyDSCacheInvalidationUser: String { "com.apple.system.DirectoryService.InvalidateCache.user" }
/// /etc/group changed.
public var kNotifyDSCacheInvalidationGroup: String { "com.apple.system.DirectoryService.InvalidateCache.group" }
/// /etc/hosts changed.
public var kNotifyDSCacheInvalidationHost: String { "com.apple.system.DirectoryService.InvalidateCache.host" }
/// /etc/services or /etc/protocols changed.
public var kNotifyDSCacheInvalidationService: String { "com.apple.system.DirectoryService.InvalidateCache.service" }
/// The system locale changed, in /etc/locale.conf or /etc/default/locale.
public var kNotifyBusLocale: String { "org.notifybus.system.locale" }
/// The system keyboard layout changed, in /etc/default/keyboard, /etc/vconsole.conf or /etc/X11/xorg.conf.d/00-keyboard.conf.
public var kNotifyBusKeyboard: String { "org.notifybus.system.keyboard" }
/// One of the six names that begin with this one was posted.
public var kNotifyBusPowerSources: String { "com.apple.system.powersources" }
/// External power came or went.
public var kNotifyBusPowerSource: String { "com.apple.system.powersources.source" }
/// The charge of the battery changed, or external power came or went.
public var kNotifyBusPowerPercent: String { "com.apple.system.powersources.percent" }
/// The estimate of how long the battery lasts changed.
public var kNotifyBusTimeRemaining: String { "com.apple.system.powersources.timeremaining" }
/// The battery charge became low.
public var kNotifyBusLowBattery: String { "com.apple.system.powersources.lowbattery" }
/// The battery charge became critical, or is no longer critical.
public var kNotifyBusCriticalLevel: String { "com.apple.system.powersources.criticallevel" }
/// A battery or another power source was attached or removed.
public var kNotifyBusPowerAttach: String { "com.apple.system.powersources.attach" }
/// The lid was opened or closed.
public var kNotifyBusLid: String { "com.apple.system.powermanagement.clamshellstate" }
/// The power-saver profile was turned on or off.
public var kNotifyBusLowPowerMode: String { "com.apple.system.lowpowermode" }
/// The machine began to run slower because of heat, or stopped doing so.
public var kNotifyBusThermalPressure: String { "com.apple.system.thermalpressurelevel" }
/// The memory pressure changed.
public var kNotifyBusMemoryPressure: String { "org.notifybus.system.memory" }
/// The machine is about to sleep; it waits briefly for observers of this name and for what launch.d starts.
public var kNotifyBusWillSleep: String { "org.notifybus.system.willsleep" }
/// The machine woke up from sleep.
public var kNotifyBusDidWake: String { "org.notifybus.system.didwake" }
/// The machine is about to shut down or restart.
public var kNotifyBusWillShutdown: String { "org.notifybus.system.willshutdown" }
/// Somebody logged in or out.
public var kNotifyBusSessions: String { "org.notifybus.system.sessions" }
/// The screen was locked or unlocked.
public var kNotifyBusLock: String { "org.notifybus.session.lock" }
/// The session became active or inactive, as another session or a console came to the front.
public var kNotifyBusActive: String { "org.notifybus.session.active" }
/// The session became idle, or is in use again.
public var kNotifyBusIdle: String { "org.notifybus.session.idle" }
/// The preference for dark or light windows changed.
public var kNotifyBusAppearance: String { "org.notifybus.session.appearance" }
/// The kernel reports no event when a file system fills up; notifybus-events(7) shows a timer that checks.
public var kNotifyVFSLowDiskSpace: String { "com.apple.system.lowdiskspace" }
/// The kernel reports no event when a file system fills up; notifybus-events(7) shows a timer that checks.
public var kNotifyVFSLowDiskSpaceRootFS: String { "com.apple.system.lowdiskspace.system" }
/// The kernel reports no event when a file system fills up; notifybus-events(7) shows a timer that checks.
public var kNotifyVFSLowDiskSpaceOtherFS: String { "com.apple.system.lowdiskspace.user" }
/// It would be posted for every line of the log; use 'journalctl -f' instead.
public var kNotifyASLDBUpdate: String { "com.apple.system.logger.message" }
