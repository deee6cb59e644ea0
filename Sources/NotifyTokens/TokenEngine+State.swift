// SPDX-License-Identifier: Apache-2.0

import NotifyCore

extension TokenEngine {
    /// Sets the state of a token's name.
    package func setState(_ value: UInt64, of token: Int32) throws(NotifyStatus) {
        _ = try find(token)
        throw .serverNotFound
    }

    /// The state of a token's name.
    package func state(of token: Int32) throws(NotifyStatus) -> UInt64 {
        _ = try find(token)
        throw .serverNotFound
    }

    func forgetState(of record: NameRecord) {}

    package func suspend(process: Int32) throws(NotifyStatus) { throw .serverNotFound }
    package func resume(process: Int32) throws(NotifyStatus) { throw .serverNotFound }
}
