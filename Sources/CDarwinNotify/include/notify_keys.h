/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notify_keys.h - the names that Darwin's own services post
 *
 * All begin with "com.apple.system.": on the system bus only root can post them. On Linux a name is heard only where
 * somebody posts it; Documentation/darwin.md says which are posted here, and by whom.
 */
#ifndef NOTIFYBUS_NOTIFY_KEYS_H
#define NOTIFYBUS_NOTIFY_KEYS_H

/* Cached users, groups, hosts or services are out of date. */
#define kNotifyDSCacheInvalidation "com.apple.system.DirectoryService.InvalidateCache"
#define kNotifyDSCacheInvalidationGroup "com.apple.system.DirectoryService.InvalidateCache.group"
#define kNotifyDSCacheInvalidationHost "com.apple.system.DirectoryService.InvalidateCache.host"
#define kNotifyDSCacheInvalidationService "com.apple.system.DirectoryService.InvalidateCache.service"
#define kNotifyDSCacheInvalidationUser "com.apple.system.DirectoryService.InvalidateCache.user"

/* A file system was mounted, unmounted or changed; there is little room left on any, on the root's, on another. */
#define kNotifyVFSMount "com.apple.system.kernel.mount"
#define kNotifyVFSUnmount "com.apple.system.kernel.unmount"
#define kNotifyVFSUpdate "com.apple.system.kernel.mountupdate"
#define kNotifyVFSLowDiskSpace "com.apple.system.lowdiskspace"
#define kNotifyVFSLowDiskSpaceRootFS "com.apple.system.lowdiskspace.system"
#define kNotifyVFSLowDiskSpaceOtherFS "com.apple.system.lowdiskspace.user"

/* The host's name, or an address or route of the network, has changed. */
#define kNotifySCHostNameChange "com.apple.system.hostname"
#define kNotifySCNetworkChange "com.apple.system.config.network_change"

/* There are new log messages. */
#define kNotifyASLDBUpdate "com.apple.system.logger.message"

/* The time zone was changed, or the clock was set. */
#define kNotifyTimeZoneChange "com.apple.system.timezone"
#define kNotifyClockSet "com.apple.system.clock_set"

#endif
