// SPDX-License-Identifier: Apache-2.0

// The names are Darwin's.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

import NotifyTokens

/// Finds out whether the name of a token was posted since the last check. The first check yields 1.
///
/// It only reads memory, without a system call or a lock.
@discardableResult
public func notify_check(_ token: Int32, _ check: UnsafeMutablePointer<Int32>!) -> UInt32 {
    checkToken(token, check)
}

/// Gets a number that changes whenever the name of a token is posted.
@discardableResult
public func notify_peek(_ token: Int32, _ val: UnsafeMutablePointer<UInt32>!) -> UInt32 {
    peekAtToken(token, val)
}

/// Whether a number is currently the token of a registration of this process.
public func notify_is_valid_token(_ val: Int32) -> Bool {
    isValidToken(val)
}

/// Suspends delivery for a token until ``notify_resume(_:)`` has been called as often as this.
@discardableResult
public func notify_suspend(_ token: Int32) -> UInt32 {
    status { () throws(NotifyStatus) in try TokenEngine.shared.suspend(token) }
}

/// Resumes delivery for a token, with one notification immediately if its name was posted in the meantime.
@discardableResult
public func notify_resume(_ token: Int32) -> UInt32 {
    status { () throws(NotifyStatus) in try TokenEngine.shared.resume(token) }
}

/// Sets the state of a token's name. It posts nothing: set, then post.
///
/// The lifecycle agent keeps it as long as any process has a registration of the name. Waits for the agent, 2 seconds
/// at most.
///
/// - Returns: a status; `NOTIFY_STATUS_SERVER_NOT_FOUND` if there is no agent.
@discardableResult
public func notify_set_state(_ token: Int32, _ state64: UInt64) -> UInt32 {
    status { () throws(NotifyStatus) in try TokenEngine.shared.setState(state64, of: token) }
}

/// Gets the state of a token's name; 0 if it was not set. See ``notify_set_state(_:_:)``.
@discardableResult
public func notify_get_state(_ token: Int32, _ state64: UnsafeMutablePointer<UInt64>!) -> UInt32 {
    status { () throws(NotifyStatus) in
        guard let state64 else { throw .nullInput }
        state64.pointee = try TokenEngine.shared.state(of: token)
    }
}

/// Suspends delivery to a process, through the lifecycle agent, until ``notify_resume_pid(_:)``.
@discardableResult
public func notify_suspend_pid(_ pid: Int32) -> UInt32 {
    status { () throws(NotifyStatus) in try TokenEngine.shared.suspend(process: pid) }
}

/// Resumes delivery to a process: one notification for each registration whose name was posted in the meantime.
@discardableResult
public func notify_resume_pid(_ pid: Int32) -> UInt32 {
    status { () throws(NotifyStatus) in try TokenEngine.shared.resume(process: pid) }
}
