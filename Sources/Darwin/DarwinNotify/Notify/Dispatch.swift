// SPDX-License-Identifier: Apache-2.0

// The names are Darwin's.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

// The functions and constants of <notify.h>, <notify_private.h> and <notify_keys.h>, as on Darwin. Functions that take
// a block are here, since a block is a closure in Swift.
@_exported public import CDarwinNotify
public import Dispatch
import NotifyTokens

/// The callback of ``notify_register_dispatch(_:_:_:_:)``, which receives the token of its registration.
///
/// On Darwin this is a block; here it is a Swift closure.
public typealias notify_handler_t = (Int32) -> Void

/// Registers a closure to be run on a queue for each notification of a name.
///
/// Up to 4,096 notifications are queued individually; further ones are coalesced. The closure may cancel its own token.
/// A call that has not started when `notify_cancel` returns never will.
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
