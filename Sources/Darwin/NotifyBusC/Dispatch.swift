// SPDX-License-Identifier: Apache-2.0

// The names and the documentation are those of the C header.
// swift-format-ignore-file: AlwaysUseLowerCamelCase, AllPublicDeclarationsHaveDocumentation

import CNotifyDispatch
import NotifyTokens

/// The implementation of the C function `notify_register_dispatch`: see CNotifyDispatch.h, which declares it for C.
@_cdecl("notifybus_register_dispatch")
public func c_notifybus_register_dispatch(
    _ name: UnsafePointer<CChar>?,
    _ out_token: UnsafeMutablePointer<Int32>?,
    _ queue: UnsafeMutableRawPointer?,
    _ block: UnsafeMutableRawPointer?
) -> UInt32 {
    status { () throws(NotifyStatus) in
        out_token?.pointee = -1
        guard let queue, let block else { throw .nullInput }
        guard nd_is_available(), nd_is_block(block) else { throw .invalidRequest }
        let target = BlockTarget(queue: queue)
        // The block is copied once the token has been stored: a `__block` variable moves with the first copy, and the
        // block then finds the token in it.
        try TokenEngine.shared.register(
            name,
            .queue { target.schedule($0) },
            token: out_token,
            prepare: { target.take(block) }
        )
    }
}

/// A block and the queue that it runs on; both are retained until they are no longer needed.
///
/// `@unchecked Sendable`: the pointers do not change once something can be delivered, and libdispatch and the Blocks
/// runtime may be used from any thread.
private final class BlockTarget: @unchecked Sendable {
    private let queue: UnsafeMutableRawPointer
    private var block: UnsafeMutableRawPointer?

    init(queue: UnsafeMutableRawPointer) {
        nd_retain_queue(queue)
        self.queue = queue
    }

    deinit {
        if let block { nd_release_block(block) }
        nd_release_queue(queue)
    }

    /// - Returns: false if out of memory.
    func take(_ block: UnsafeMutableRawPointer) -> Bool {
        self.block = nd_copy_block(block)
        return self.block != nil
    }

    private final class Turn {
        let target: BlockTarget
        let registration: Registration

        init(_ target: BlockTarget, _ registration: Registration) {
            self.target = target
            self.registration = registration
        }
    }

    func schedule(_ registration: Registration) {
        nd_async(queue, Unmanaged.passRetained(Turn(self, registration)).toOpaque()) { context in
            guard let context else { return }
            let turn = Unmanaged<Turn>.fromOpaque(context).takeRetainedValue()
            guard let block = turn.target.block else { return }
            turn.registration.run { nd_call_block(block, turn.registration.token) }
        }
    }
}
