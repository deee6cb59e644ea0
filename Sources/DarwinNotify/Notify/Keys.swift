// SPDX-License-Identifier: Apache-2.0

// The names are those of Darwin.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

// The names of <notify_keys.h>, which Darwin's own services post. On Linux a name is heard only where somebody posts it:
// see Documentation/darwin.md.

/// Cached users, groups, hosts or services are out of date.
public var kNotifyDSCacheInvalidation: String { "com.apple.system.DirectoryService.InvalidateCache" }
/// Cached groups are out of date.
public var kNotifyDSCacheInvalidationGroup: String { "com.apple.system.DirectoryService.InvalidateCache.group" }
/// Cached hosts are out of date.
public var kNotifyDSCacheInvalidationHost: String { "com.apple.system.DirectoryService.InvalidateCache.host" }
/// Cached services are out of date.
public var kNotifyDSCacheInvalidationService: String { "com.apple.system.DirectoryService.InvalidateCache.service" }
/// Cached users are out of date.
public var kNotifyDSCacheInvalidationUser: String { "com.apple.system.DirectoryService.InvalidateCache.user" }
/// A file system was mounted.
public var kNotifyVFSMount: String { "com.apple.system.kernel.mount" }
/// A file system was unmounted.
public var kNotifyVFSUnmount: String { "com.apple.system.kernel.unmount" }
/// A mounted file system was changed.
public var kNotifyVFSUpdate: String { "com.apple.system.kernel.mountupdate" }
/// A file system has little room left.
public var kNotifyVFSLowDiskSpace: String { "com.apple.system.lowdiskspace" }
/// The root's file system has little room left.
public var kNotifyVFSLowDiskSpaceRootFS: String { "com.apple.system.lowdiskspace.system" }
/// A file system other than the root's has little room left.
public var kNotifyVFSLowDiskSpaceOtherFS: String { "com.apple.system.lowdiskspace.user" }
/// The host's name has changed.
public var kNotifySCHostNameChange: String { "com.apple.system.hostname" }
/// An address or a route of the network has changed.
public var kNotifySCNetworkChange: String { "com.apple.system.config.network_change" }
/// There are new log messages.
public var kNotifyASLDBUpdate: String { "com.apple.system.logger.message" }
/// The time zone was changed.
public var kNotifyTimeZoneChange: String { "com.apple.system.timezone" }
/// The clock was set.
public var kNotifyClockSet: String { "com.apple.system.clock_set" }
