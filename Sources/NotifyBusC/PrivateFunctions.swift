// SPDX-License-Identifier: Apache-2.0

// The names and the documentation are those of the C header.
// swift-format-ignore-file: AlwaysUseLowerCamelCase, AllPublicDeclarationsHaveDocumentation

import CDarwinNotify
import NotifyTokens

// The functions of <notify_private.h>, which documents them.

@c @implementation
public func notify_set_options(_ opts: UInt32) {
    TokenEngine.shared.setOptions(opts)
}

@c @implementation
public func notify_register_plain(_ name: UnsafePointer<CChar>!, _ out_token: UnsafeMutablePointer<Int32>!) -> UInt32 {
    status { () throws(NotifyStatus) in try TokenEngine.shared.register(name, .none, token: out_token) }
}

@c @implementation
public func notify_peek(_ token: Int32, _ val: UnsafeMutablePointer<UInt32>!) -> UInt32 {
    peekAtToken(token, val)
}

@c @implementation
public func notify_monitor_file(_ token: Int32, _ path: UnsafeMutablePointer<CChar>!, _ flags: Int32) -> UInt32 {
    status { () throws(NotifyStatus) in try TokenEngine.shared.monitorFile(token, path: path) }
}

@c @implementation
public func notify_suspend_pid(_ pid: Int32) -> UInt32 {
    status { () throws(NotifyStatus) in try TokenEngine.shared.suspend(process: pid) }
}

@c @implementation
public func notify_resume_pid(_ pid: Int32) -> UInt32 {
    status { () throws(NotifyStatus) in try TokenEngine.shared.resume(process: pid) }
}

@c @implementation
public func notify_simple_post(_ name: UnsafePointer<CChar>!) -> UInt32 {
    notify_post(name)
}

@c @implementation
public func notify_get_event(
    _ token: Int32,
    _ ev: UnsafeMutablePointer<Int32>!,
    _ buf: UnsafeMutablePointer<CChar>!,
    _ len: UnsafeMutablePointer<Int32>!
) -> UInt32 {
    if let ev { ev.pointee = 0 }
    if let len { len.pointee = 0 }
    return NotifyStatus.ok.rawValue
}

@c @implementation
public func notify_dump_status(_ filepath: UnsafePointer<CChar>!) -> UInt32 {
    NotifyStatus.invalidRequest.rawValue
}

@c @implementation
public func _notify_fork_child() {}
