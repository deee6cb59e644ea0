// SPDX-License-Identifier: Apache-2.0
//! Posts more names than a queue holds, without any being coalesced.
// snippet.hide

import NotifyBus

let center = NotifyCenter.session
// snippet.show
for number in 1...10_000 {
    try center.post("com.example.step")
    if number.isMultiple(of: 4_000) { try await center.flush() }
}
try await center.flush()
print("posted", center.statistics.posted, "coalesced", center.statistics.coalesced)
