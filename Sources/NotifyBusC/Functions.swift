// SPDX-License-Identifier: Apache-2.0

// The names and the documentation are those of the C header.
// swift-format-ignore-file: AlwaysUseLowerCamelCase, AllPublicDeclarationsHaveDocumentation

import CDarwinNotify
import NotifyTokens

// The functions of <notify.h>, which documents them.

@c @implementation
public func notify_post(_ name: UnsafePointer<CChar>!) -> UInt32 {
    status { () throws(NotifyStatus) in try TokenEngine.shared.post(name) }
}

@c @implementation
public func notify_register_check(_ name: UnsafePointer<CChar>!, _ out_token: UnsafeMutablePointer<Int32>!) -> UInt32 {
    status { () throws(NotifyStatus) in try TokenEngine.shared.register(name, .none, token: out_token) }
}

@c @implementation
public func notify_register_signal(
    _ name: UnsafePointer<CChar>!,
    _ sig: Int32,
    _ out_token: UnsafeMutablePointer<Int32>!
) -> UInt32 {
    status { () throws(NotifyStatus) in
        try TokenEngine.shared.register(name, signal: sig, token: out_token)
    }
}

@c @implementation
public func notify_register_file_descriptor(
    _ name: UnsafePointer<CChar>!,
    _ notify_fd: UnsafeMutablePointer<Int32>!,
    _ flags: Int32,
    _ out_token: UnsafeMutablePointer<Int32>!
) -> UInt32 {
    status { () throws(NotifyStatus) in
        try TokenEngine.shared.register(name, descriptor: notify_fd, flags: flags, token: out_token)
    }
}

@c @implementation
public func notify_check(_ token: Int32, _ check: UnsafeMutablePointer<Int32>!) -> UInt32 {
    checkToken(token, check)
}

@c @implementation
public func notify_cancel(_ token: Int32) -> UInt32 {
    status { () throws(NotifyStatus) in try TokenEngine.shared.cancel(token) }
}

@c @implementation
public func notify_suspend(_ token: Int32) -> UInt32 {
    status { () throws(NotifyStatus) in try TokenEngine.shared.suspend(token) }
}

@c @implementation
public func notify_resume(_ token: Int32) -> UInt32 {
    status { () throws(NotifyStatus) in try TokenEngine.shared.resume(token) }
}

@c @implementation
public func notify_set_state(_ token: Int32, _ state64: UInt64) -> UInt32 {
    status { () throws(NotifyStatus) in try TokenEngine.shared.setState(state64, of: token) }
}

@c @implementation
public func notify_get_state(_ token: Int32, _ state64: UnsafeMutablePointer<UInt64>!) -> UInt32 {
    status { () throws(NotifyStatus) in
        guard let state64 else { throw .nullInput }
        state64.pointee = try TokenEngine.shared.state(of: token)
    }
}

@c @implementation
public func notify_is_valid_token(_ val: Int32) -> Bool {
    isValidToken(val)
}
