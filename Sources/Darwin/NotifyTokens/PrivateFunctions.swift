// SPDX-License-Identifier: Apache-2.0

// The names and the documentation are those of the C header.
// swift-format-ignore-file: AlwaysUseLowerCamelCase, AllPublicDeclarationsHaveDocumentation

// The functions of <notify_private.h>, which documents them.

@_cdecl("notify_set_options")
public func c_notify_set_options(_ opts: UInt32) {
    TokenEngine.shared.setOptions(opts)
}

@_cdecl("notify_register_plain")
public func c_notify_register_plain(_ name: UnsafePointer<CChar>!, _ out_token: UnsafeMutablePointer<Int32>!) -> UInt32
{
    status { () throws(NotifyStatus) in try TokenEngine.shared.register(name, .plain, token: out_token) }
}

@_cdecl("notify_peek")
public func c_notify_peek(_ token: Int32, _ val: UnsafeMutablePointer<UInt32>!) -> UInt32 {
    peekAtToken(token, val)
}

@_cdecl("notify_monitor_file")
public func c_notify_monitor_file(_ token: Int32, _ path: UnsafePointer<CChar>!, _ flags: Int32) -> UInt32 {
    status { () throws(NotifyStatus) in try TokenEngine.shared.monitorFile(token, path: path) }
}

@_cdecl("notify_suspend_pid")
public func c_notify_suspend_pid(_ pid: Int32) -> UInt32 {
    status { () throws(NotifyStatus) in try TokenEngine.shared.suspend(process: pid) }
}

@_cdecl("notify_resume_pid")
public func c_notify_resume_pid(_ pid: Int32) -> UInt32 {
    status { () throws(NotifyStatus) in try TokenEngine.shared.resume(process: pid) }
}

@_cdecl("notify_simple_post")
public func c_notify_simple_post(_ name: UnsafePointer<CChar>!) -> UInt32 {
    c_notify_post(name)
}

@_cdecl("notify_get_event")
public func c_notify_get_event(
    _ token: Int32,
    _ ev: UnsafeMutablePointer<Int32>!,
    _ buf: UnsafeMutablePointer<CChar>!,
    _ len: UnsafeMutablePointer<Int32>!
) -> UInt32 {
    if let ev { ev.pointee = 0 }
    if let len { len.pointee = 0 }
    return NotifyStatus.ok.rawValue
}

@_cdecl("notify_dump_status")
public func c_notify_dump_status(_ filepath: UnsafePointer<CChar>!) -> UInt32 {
    NotifyStatus.invalidRequest.rawValue
}

@_cdecl("_notify_fork_child")
public func c_notify_fork_child() {}
