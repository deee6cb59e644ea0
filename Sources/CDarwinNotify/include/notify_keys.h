/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notify_keys.h - names that are posted when something happens to the machine or the session
 *
 * notifybus-events(7) says which are posted when, and what their states say. On the system bus only root can post
 * those that begin with "com.apple.system." or "org.notifybus.system.".
 *
 * Made from the table of these names: notify-agent --generate keys.h
 */
#ifndef NOTIFYBUS_NOTIFY_KEYS_H
#define NOTIFYBUS_NOTIFY_KEYS_H

/* The time zone was changed. */
#define kNotifyTimeZoneChange "com.apple.system.timezone"

/* The clock was set, or the machine woke up. Slewing by NTP does not count. */
#define kNotifyClockSet "com.apple.system.clock_set"

/* The host's name has changed. */
#define kNotifySCHostNameChange "com.apple.system.hostname"

/* A file system was mounted. */
#define kNotifyVFSMount "com.apple.system.kernel.mount"

/* A file system was unmounted. */
#define kNotifyVFSUnmount "com.apple.system.kernel.unmount"

/* The options of a mounted file system were changed. */
#define kNotifyVFSUpdate "com.apple.system.kernel.mountupdate"

/* An address, a default route or the set of interfaces that are up has changed. */
#define kNotifySCNetworkChange "com.apple.system.config.network_change"

/* The servers or domains of DNS have changed. */
#define kNotifyBusDNSChange "com.apple.system.config.network_change.dns"

/* Users, groups, hosts or services have changed in /etc. */
#define kNotifyDSCacheInvalidation "com.apple.system.DirectoryService.InvalidateCache"

/* /etc/passwd has changed. */
#define kNotifyDSCacheInvalidationUser "com.apple.system.DirectoryService.InvalidateCache.user"

/* /etc/group has changed. */
#define kNotifyDSCacheInvalidationGroup "com.apple.system.DirectoryService.InvalidateCache.group"

/* /etc/hosts has changed. */
#define kNotifyDSCacheInvalidationHost "com.apple.system.DirectoryService.InvalidateCache.host"

/* /etc/services or /etc/protocols has changed. */
#define kNotifyDSCacheInvalidationService "com.apple.system.DirectoryService.InvalidateCache.service"

/* The machine's language was changed, in /etc/locale.conf or /etc/default/locale. */
#define kNotifyBusLocale "org.notifybus.system.locale"

/* The machine's keyboard layout was changed, in /etc/default/keyboard, /etc/vconsole.conf or /etc/X11/xorg.conf.d/00-keyboard.conf. */
#define kNotifyBusKeyboard "org.notifybus.system.keyboard"

/* How much programs wait for memory has changed. */
#define kNotifyBusMemoryPressure "org.notifybus.system.memory"

/* The machine is about to sleep; it waits for those who are told. */
#define kNotifyBusWillSleep "org.notifybus.system.willsleep"

/* The machine has woken from sleep. */
#define kNotifyBusDidWake "org.notifybus.system.didwake"

/* The machine is about to shut down or restart. */
#define kNotifyBusWillShutdown "org.notifybus.system.willshutdown"

/* Somebody has logged in or out. */
#define kNotifyBusSessions "org.notifybus.system.sessions"

/* The screen was locked or unlocked. */
#define kNotifyBusLock "org.notifybus.session.lock"

/* The session came to the front, or another one or a console did. */
#define kNotifyBusActive "org.notifybus.session.active"

/* Nobody has used the session for a while, or somebody does again. */
#define kNotifyBusIdle "org.notifybus.session.idle"

/* No event of the kernel says how full a file system is; notifybus-events(7) has a timer that looks. */
#define kNotifyVFSLowDiskSpace "com.apple.system.lowdiskspace"

/* No event of the kernel says how full a file system is; notifybus-events(7) has a timer that looks. */
#define kNotifyVFSLowDiskSpaceRootFS "com.apple.system.lowdiskspace.system"

/* No event of the kernel says how full a file system is; notifybus-events(7) has a timer that looks. */
#define kNotifyVFSLowDiskSpaceOtherFS "com.apple.system.lowdiskspace.user"

/* That would be a post for each line of the log; 'journalctl -f' follows it. */
#define kNotifyASLDBUpdate "com.apple.system.logger.message"

#endif
