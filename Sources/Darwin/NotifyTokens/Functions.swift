// SPDX-License-Identifier: Apache-2.0

// The names and the documentation are those of the C header.
// swift-format-ignore-file: AlwaysUseLowerCamelCase, AllPublicDeclarationsHaveDocumentation

// The functions of <notify.h>, which documents them, for all who link them: programs in Swift and in C, also those that
// declare them by hand, and libnotifybus.so. Swift code sees the declarations of the header, not these. A test compares
// the two.

@_cdecl("notify_post")
public func c_notify_post(_ name: UnsafePointer<CChar>!) -> UInt32 {
    status { () throws(NotifyStatus) in try TokenEngine.shared.post(name) }
}

@_cdecl("notify_register_check")
public func c_notify_register_check(_ name: UnsafePointer<CChar>!, _ out_token: UnsafeMutablePointer<Int32>!) -> UInt32
{
    status { () throws(NotifyStatus) in try TokenEngine.shared.register(name, .none, token: out_token) }
}

@_cdecl("notify_register_signal")
public func c_notify_register_signal(
    _ name: UnsafePointer<CChar>!,
    _ sig: Int32,
    _ out_token: UnsafeMutablePointer<Int32>!
) -> UInt32 {
    status { () throws(NotifyStatus) in
        try TokenEngine.shared.register(name, signal: sig, token: out_token)
    }
}

@_cdecl("notify_register_file_descriptor")
public func c_notify_register_file_descriptor(
    _ name: UnsafePointer<CChar>!,
    _ notify_fd: UnsafeMutablePointer<Int32>!,
    _ flags: Int32,
    _ out_token: UnsafeMutablePointer<Int32>!
) -> UInt32 {
    status { () throws(NotifyStatus) in
        try TokenEngine.shared.register(name, descriptor: notify_fd, flags: flags, token: out_token)
    }
}

@_cdecl("notify_register_callback")
public func c_notify_register_callback(
    _ name: UnsafePointer<CChar>!,
    _ out_token: UnsafeMutablePointer<Int32>!,
    _ callback: (@convention(c) (Int32, UnsafeMutableRawPointer?) -> Void)!,
    _ context: UnsafeMutableRawPointer!
) -> UInt32 {
    status { () throws(NotifyStatus) in
        out_token?.pointee = -1
        guard let callback else { throw .nullInput }
        try TokenEngine.shared.register(name, .callback(.init(callback, context)), token: out_token)
    }
}

/// Linux has no Mach ports. The header makes calls an error; this is for what declares the function by hand.
@_cdecl("notify_register_mach_port")
public func c_notify_register_mach_port(
    _ name: UnsafePointer<CChar>!,
    _ notify_port: UnsafeMutableRawPointer!,
    _ flags: Int32,
    _ out_token: UnsafeMutablePointer<Int32>!
) -> UInt32 {
    if let out_token { out_token.pointee = -1 }
    return NotifyStatus.invalidPort.rawValue
}

@_cdecl("notify_check")
public func c_notify_check(_ token: Int32, _ check: UnsafeMutablePointer<Int32>!) -> UInt32 {
    checkToken(token, check)
}

@_cdecl("notify_cancel")
public func c_notify_cancel(_ token: Int32) -> UInt32 {
    status { () throws(NotifyStatus) in try TokenEngine.shared.cancel(token) }
}

@_cdecl("notify_suspend")
public func c_notify_suspend(_ token: Int32) -> UInt32 {
    status { () throws(NotifyStatus) in try TokenEngine.shared.suspend(token) }
}

@_cdecl("notify_resume")
public func c_notify_resume(_ token: Int32) -> UInt32 {
    status { () throws(NotifyStatus) in try TokenEngine.shared.resume(token) }
}

@_cdecl("notify_set_state")
public func c_notify_set_state(_ token: Int32, _ state64: UInt64) -> UInt32 {
    status { () throws(NotifyStatus) in try TokenEngine.shared.setState(state64, of: token) }
}

@_cdecl("notify_get_state")
public func c_notify_get_state(_ token: Int32, _ state64: UnsafeMutablePointer<UInt64>!) -> UInt32 {
    status { () throws(NotifyStatus) in
        guard let state64 else { throw .nullInput }
        state64.pointee = try TokenEngine.shared.state(of: token)
    }
}

@_cdecl("notify_is_valid_token")
public func c_notify_is_valid_token(_ val: Int32) -> Bool {
    isValidToken(val)
}
