// SPDX-License-Identifier: Apache-2.0

// What programs call whenever they look into a cache: no lock, no closure, no reference counting. Reference counting
// would take 40 ns; the rest takes 4.5.

/// The table of the shared engine, which is never released.
private let sharedTable = Unmanaged.passRetained(TokenEngine.shared.table)

/// Implements `notify_check`.
package func checkToken(_ token: Int32, _ check: UnsafeMutablePointer<Int32>?) -> UInt32 {
    guard let check else { return 10 }
    switch sharedTable._withUnsafeGuaranteedRef({ $0.check(token) }) {
    case false?: check.pointee = 0
    case true?: check.pointee = 1
    case nil: return 2
    }
    return 0
}

/// Implements `notify_peek`.
package func peekAtToken(_ token: Int32, _ value: UnsafeMutablePointer<UInt32>?) -> UInt32 {
    guard let value else { return 10 }
    switch sharedTable._withUnsafeGuaranteedRef({ $0.posts(token) }) {
    case .success(let posts): value.pointee = posts
    case .failure(let status): return status.rawValue
    }
    return 0
}

/// Implements `notify_is_valid_token`.
package func isValidToken(_ token: Int32) -> Bool {
    sharedTable._withUnsafeGuaranteedRef { $0.contains(token) }
}
