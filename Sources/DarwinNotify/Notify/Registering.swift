// SPDX-License-Identifier: Apache-2.0

// The names are Darwin's.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

public import Dispatch
import NotifyTokens

// The functions of <notify.h> that register, and the one that ends a registration. All take a name, store a token in an
// output argument, and return a status; the constants document what each status means. Once one has returned
// `NOTIFY_STATUS_OK`, every later post is heard. See notify(3).

/// The callback of ``notify_register_dispatch(_:_:_:_:)``, which receives the token of its registration.
///
/// On Darwin this is a block; here it is a Swift closure.
public typealias notify_handler_t = (Int32) -> Void

/// Registers a closure to be run on a queue for each notification of a name.
///
/// Up to 4,096 notifications are queued individually; further ones are coalesced. The closure may cancel its own token.
/// A call that has not started when ``notify_cancel(_:)`` returns never will.
///
/// - Parameters:
///   - name: the name, 1 to 511 bytes of UTF-8.
///   - out_token: receives the token.
///   - queue: where the closure runs, in order if the queue is serial.
///   - handler: receives the token.
/// - Returns: a status; `NOTIFY_STATUS_NULL_INPUT` if an argument other than the name is nil.
@discardableResult
public func notify_register_dispatch(
    _ name: UnsafePointer<CChar>!,
    _ out_token: UnsafeMutablePointer<Int32>!,
    _ queue: DispatchQueue!,
    _ handler: notify_handler_t!
) -> UInt32 {
    status { () throws(NotifyStatus) in
        out_token?.pointee = NOTIFY_TOKEN_INVALID
        guard let queue, let handler else { throw .nullInput }
        let target = Handler(run: handler)
        try TokenEngine.shared.register(
            name,
            .queue { registration in
                queue.async { registration.run { target.run(registration.token) } }
            },
            token: out_token
        )
    }
}

/// `@unchecked Sendable`: the closure is called only on the queue that was passed along with it, as on Darwin; what it
/// may touch there is up to the caller.
private struct Handler: @unchecked Sendable {
    let run: notify_handler_t
}

/// Registers a name for ``notify_check(_:_:)``.
@discardableResult
public func notify_register_check(
    _ name: UnsafePointer<CChar>!,
    _ out_token: UnsafeMutablePointer<Int32>!
) -> UInt32 {
    status { () throws(NotifyStatus) in try TokenEngine.shared.register(name, .none, token: out_token) }
}

/// Registers a name to be sent a signal, as by `kill(getpid(), sig)`, for each notification.
@discardableResult
public func notify_register_signal(
    _ name: UnsafePointer<CChar>!,
    _ sig: Int32,
    _ out_token: UnsafeMutablePointer<Int32>!
) -> UInt32 {
    status { () throws(NotifyStatus) in try TokenEngine.shared.register(name, signal: sig, token: out_token) }
}

/// Registers a name with a descriptor from which the token can be read for each notification, as four bytes in network
/// byte order.
///
/// - Parameters:
///   - name: the name, 1 to 511 bytes of UTF-8.
///   - notify_fd: receives a new descriptor; with `NOTIFY_REUSE`, the descriptor of an earlier registration to use. It
///     is closed when its last token is cancelled: do not close it yourself.
///   - flags: 0 or `NOTIFY_REUSE`.
///   - out_token: receives the token.
@discardableResult
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

/// Linux has no Mach ports.
@available(*, unavailable, message: "Linux has no Mach ports; use notify_register_file_descriptor()")
public func notify_register_mach_port(
    _ name: UnsafePointer<CChar>!,
    _ notify_port: UnsafeMutablePointer<UInt32>!,
    _ flags: Int32,
    _ out_token: UnsafeMutablePointer<Int32>!
) -> UInt32 {
    NotifyStatus.invalidRequest.rawValue
}

/// Registers a name for its state, for ``notify_peek(_:_:)`` or ``notify_monitor_file(_:_:_:)``. Nothing is delivered.
@discardableResult
public func notify_register_plain(
    _ name: UnsafePointer<CChar>!,
    _ out_token: UnsafeMutablePointer<Int32>!
) -> UInt32 {
    status { () throws(NotifyStatus) in try TokenEngine.shared.register(name, .none, token: out_token) }
}

/// Ends a registration: no delivery starts after this has returned. May be called by the handler.
@discardableResult
public func notify_cancel(_ token: Int32) -> UInt32 {
    status { () throws(NotifyStatus) in try TokenEngine.shared.cancel(token) }
}
