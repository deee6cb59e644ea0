// SPDX-License-Identifier: Apache-2.0

import DarwinNotify

/// Programs that each try a rule of the functions.
enum Rules {
    @MainActor static let all: [String: @MainActor () -> Void] = [:]
}
