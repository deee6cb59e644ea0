/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notify_keys.h - names posted when something happens to the machine or the session
 *
 * See notifybus-events(7) for when each is posted and what its state means. On the system bus only root can post
 * those that begin with "com.apple.system." or "org.notifybus.system.".
 *
 * Generated from the table of these names: notify-agent --generate keys.h
 */
#ifndef NOTIFYBUS_NOTIFY_KEYS_H
#define NOTIFYBUS_NOTIFY_KEYS_H

/* The time zone changed. */
#define kNotifyTimeZoneChange "com.apple.system.timezone"

/* The clock was set, or the machine woke up. Slewing by NTP does not count. */
#define kNotifyClockSet "com.apple.system.clock_set"

/* The host name changed. */
#define kNotifySCHostNameChange "com.apple.system.hostname"

/* A file system was mounted. */
#define kNotifyVFSMount "com.apple.system.kernel.mount"

/* A file system was unmounted. */
#define kNotifyVFSUnmount "com.apple.system.kernel.unmount"

/* The options of a mounted file system changed. */
#define kNotifyVFSUpdate "com.apple.system.kernel.mountupdate"

/* An address, a default route or the set of interfaces that are up changed. */
#define kNotifySCNetworkChange "com.apple.system.config.network_change"

/* The DNS servers or domains changed. */
#define kNotifyBusDNSChange "com.apple.system.config.network_change.dns"

/* Users, groups, hosts or services changed in /etc. */
#define kNotifyDSCacheInvalidation "com.apple.system.DirectoryService.InvalidateCache"

/* /etc/passwd changed. */
#define kNotifyDSCacheInvalidationUser "com.apple.system.DirectoryService.InvalidateCache.user"

/* /etc/group changed. */
#define kNotifyDSCacheInvalidationGroup "com.apple.system.DirectoryService.InvalidateCache.group"

/* /etc/hosts changed. */
#define kNotifyDSCacheInvalidationHost "com.apple.system.DirectoryService.InvalidateCache.host"

/* /etc/services or /etc/protocols changed. */
#define kNotifyDSCacheInvalidationService "com.apple.system.DirectoryService.InvalidateCache.service"

/* The system locale changed, in /etc/locale.conf or /etc/default/locale. */
#define kNotifyBusLocale "org.notifybus.system.locale"

/* The system keyboard layout changed, in /etc/default/keyboard, /etc/vconsole.conf or /etc/X11/xorg.conf.d/00-keyboard.conf. */
#define kNotifyBusKeyboard "org.notifybus.system.keyboard"

/* One of the six names that begin with this one was posted. */
#define kNotifyBusPowerSources "com.apple.system.powersources"

/* External power came or went. */
#define kNotifyBusPowerSource "com.apple.system.powersources.source"

/* The charge of the battery changed, or external power came or went. */
#define kNotifyBusPowerPercent "com.apple.system.powersources.percent"

/* The estimate of how long the battery lasts changed. */
#define kNotifyBusTimeRemaining "com.apple.system.powersources.timeremaining"

/* The battery charge became low. */
#define kNotifyBusLowBattery "com.apple.system.powersources.lowbattery"

/* The battery charge became critical, or is no longer critical. */
#define kNotifyBusCriticalLevel "com.apple.system.powersources.criticallevel"

/* A battery or another power source was attached or removed. */
#define kNotifyBusPowerAttach "com.apple.system.powersources.attach"

/* The lid was opened or closed. */
#define kNotifyBusLid "com.apple.system.powermanagement.clamshellstate"

/* The power-saver profile was turned on or off. */
#define kNotifyBusLowPowerMode "com.apple.system.lowpowermode"

/* The machine began to run slower because of heat, or stopped doing so. */
#define kNotifyBusThermalPressure "com.apple.system.thermalpressurelevel"

/* The memory pressure changed. */
#define kNotifyBusMemoryPressure "org.notifybus.system.memory"

/* The machine is about to sleep; it waits briefly for observers of this name and for what launch.d starts. */
#define kNotifyBusWillSleep "org.notifybus.system.willsleep"

/* The machine woke up from sleep. */
#define kNotifyBusDidWake "org.notifybus.system.didwake"

/* The machine is about to shut down or restart. */
#define kNotifyBusWillShutdown "org.notifybus.system.willshutdown"

/* Packages of dpkg or rpm were installed, removed or upgraded. */
#define kNotifyBusPackages "org.notifybus.system.packages"

/* A user logged in or out. */
#define kNotifyBusSessions "org.notifybus.system.sessions"

/* The screen was locked or unlocked. */
#define kNotifyBusLock "org.notifybus.session.lock"

/* The session became active or inactive, as another session or a console came to the front. */
#define kNotifyBusActive "org.notifybus.session.active"

/* The session became idle, or is in use again. */
#define kNotifyBusIdle "org.notifybus.session.idle"

/* The preference for dark or light windows changed. */
#define kNotifyBusAppearance "org.notifybus.session.appearance"

/* The focus moved to another program, or away. Not for programs in sandboxes. */
#define kNotifyBusFocus "org.notifybus.session.focus"

/* The kernel reports no event when a file system fills up. A timer that checks can post it. */
#define kNotifyVFSLowDiskSpace "com.apple.system.lowdiskspace"

/* The kernel reports no event when a file system fills up. A timer that checks can post it. */
#define kNotifyVFSLowDiskSpaceRootFS "com.apple.system.lowdiskspace.system"

/* The kernel reports no event when a file system fills up. A timer that checks can post it. */
#define kNotifyVFSLowDiskSpaceOtherFS "com.apple.system.lowdiskspace.user"

/* It would be posted for every line of the log; use 'journalctl -f' instead. */
#define kNotifyASLDBUpdate "com.apple.system.logger.message"

#endif
