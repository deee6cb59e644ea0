// SPDX-License-Identifier: Apache-2.0

// The names are Darwin's.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

import NotifyTokens

/// Posts a name to every registration of it, in all processes on the bus, including this one. It does not block.
///
/// - Returns: a status; `NOTIFY_STATUS_OK` even if nobody has registered for the name.
@discardableResult
public func notify_post(_ name: UnsafePointer<CChar>!) -> UInt32 {
    status { () throws(NotifyStatus) in try TokenEngine.shared.post(name) }
}

/// Notifies a token, and no other of its name, whenever a file is created, written or removed, until it is cancelled.
///
/// - Parameters:
///   - token: any token, except for a name that begins with `self.`; it monitors at most one file.
///   - path: the file; it need not exist, but its directory must.
///   - flags: 0.
@discardableResult
public func notify_monitor_file(_ token: Int32, _ path: UnsafePointer<CChar>!, _ flags: Int32) -> UInt32 {
    status { () throws(NotifyStatus) in try TokenEngine.shared.monitorFile(token, path: path) }
}

/// Disables the library in this process with `NOTIFY_OPT_DISABLE`, or enables it again with `NOTIFY_OPT_ENABLE`.
public func notify_set_options(_ opts: UInt32) {
    TokenEngine.shared.setOptions(opts)
}

/// The same as ``notify_post(_:)``.
@discardableResult
public func notify_simple_post(_ name: UnsafePointer<CChar>!) -> UInt32 {
    notify_post(name)
}

/// Only sets both numbers to 0, as on Darwin.
@discardableResult
public func notify_get_event(
    _ token: Int32,
    _ ev: UnsafeMutablePointer<Int32>!,
    _ buf: UnsafeMutablePointer<CChar>!,
    _ len: UnsafeMutablePointer<Int32>!
) -> UInt32 {
    ev?.pointee = 0
    len?.pointee = 0
    return NotifyStatus.ok.rawValue
}

/// Not supported, as nothing keeps a list of everybody's registrations; `notify-lifecycle list` shows what the
/// lifecycle agent knows.
///
/// - Returns: `NOTIFY_STATUS_INVALID_REQUEST`.
@discardableResult
public func notify_dump_status(_ filepath: UnsafePointer<CChar>!) -> UInt32 {
    NotifyStatus.invalidRequest.rawValue
}

/// Does nothing: the library handles the children of `fork` by itself.
public func _notify_fork_child() {}
