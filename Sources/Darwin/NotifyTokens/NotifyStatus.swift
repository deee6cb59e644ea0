// SPDX-License-Identifier: Apache-2.0

package import NotifyCore

/// The return values of the functions of notify(3), with the numbers from `<notify.h>`.
package enum NotifyStatus: UInt32, Error, Sendable {
    case ok = 0
    case invalidName = 1
    case invalidToken = 2
    case invalidPort = 3
    case invalidFile = 4
    case invalidSignal = 5
    case invalidRequest = 6
    case notAuthorized = 7
    case disabled = 8
    case serverNotFound = 9
    case nullInput = 10
    case failed = 1_000_000

    package init(_ error: NotifyBusError) {
        self =
            switch error.code {
            case .invalidName: .invalidName
            case .noBus, .disconnected, .noAgent: .serverNotFound
            case .notPermitted: .notAuthorized
            case .forked: .disabled
            default: .failed
            }
    }
}

/// The status of a call that has no other result.
@inline(__always)
package func status(of body: () throws(NotifyStatus) -> Void) -> UInt32 {
    do throws(NotifyStatus) {
        try body()
        return NotifyStatus.ok.rawValue
    } catch {
        return error.rawValue
    }
}
