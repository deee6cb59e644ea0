// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@Suite struct KeyTests {
    @Test(arguments: [
        ("keys.h", "Sources/Darwin/CDarwinNotify/include/notify_keys.h")
    ])
    func `the constants match the table of names`(part: String, file: String) throws {
        let made = try run(productPath("notify-agent"), ["--generate", part])
        let kept = try readFile("\(packageFolder)/\(file)")
        #expect(made.status == 0 && made.output == kept, "notify-agent --generate \(part) >\(file)")
    }
}
