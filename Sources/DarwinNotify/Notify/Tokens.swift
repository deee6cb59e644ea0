// SPDX-License-Identifier: Apache-2.0

// The names are those of Darwin.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

import NotifyTokens

/// Finds out whether the name of a token was posted since this token was asked for last; the first time it says 1.
///
/// It reads memory: no system call, no lock.
@discardableResult
public func notify_check(_ token: Int32, _ check: UnsafeMutablePointer<Int32>!) -> UInt32 {
    checkToken(token, check)
}

/// Gives a number that changes whenever the name of a token is posted.
@discardableResult
public func notify_peek(_ token: Int32, _ val: UnsafeMutablePointer<UInt32>!) -> UInt32 {
    peekAtToken(token, val)
}

/// Whether a number is the token of a registration of this process now.
public func notify_is_valid_token(_ val: Int32) -> Bool {
    isValidToken(val)
}

/// Delivers nothing for a token until ``notify_resume(_:)`` was called as often as this.
@discardableResult
public func notify_suspend(_ token: Int32) -> UInt32 {
    status { () throws(NotifyStatus) in try TokenEngine.shared.suspend(token) }
}

/// Delivers again for a token, and once at once if its name was posted meanwhile.
@discardableResult
public func notify_resume(_ token: Int32) -> UInt32 {
    status { () throws(NotifyStatus) in try TokenEngine.shared.resume(token) }
}

/// Sets the number that belongs to the name of a token. It posts nothing: set, then post.
///
/// The lifecycle agent keeps it as long as there is a registration of the name in any process. Waits for the agent, 2
/// seconds at most.
///
/// - Returns: a status; `NOTIFY_STATUS_SERVER_NOT_FOUND` if there is no agent.
@discardableResult
public func notify_set_state(_ token: Int32, _ state64: UInt64) -> UInt32 {
    status { () throws(NotifyStatus) in try TokenEngine.shared.setState(state64, of: token) }
}

/// Gives the number that belongs to the name of a token; 0 if it was not set. See ``notify_set_state(_:_:)``.
@discardableResult
public func notify_get_state(_ token: Int32, _ state64: UnsafeMutablePointer<UInt64>!) -> UInt32 {
    status { () throws(NotifyStatus) in
        guard let state64 else { throw .nullInput }
        state64.pointee = try TokenEngine.shared.state(of: token)
    }
}

/// Delivers nothing to a process, by way of the lifecycle agent, until ``notify_resume_pid(_:)``.
@discardableResult
public func notify_suspend_pid(_ pid: Int32) -> UInt32 {
    status { () throws(NotifyStatus) in try TokenEngine.shared.suspend(process: pid) }
}

/// Delivers to a process again: once for each registration whose name was posted meanwhile.
@discardableResult
public func notify_resume_pid(_ pid: Int32) -> UInt32 {
    status { () throws(NotifyStatus) in try TokenEngine.shared.resume(process: pid) }
}
