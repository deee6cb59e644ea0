// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Testing

@Suite struct PrintableTests {
    private func text(_ bytes: [UInt8], limit: Int = .max) -> String {
        bytes.withUnsafeBytes { Printable.text($0, limit: limit) }
    }

    @Test(arguments: [
        ("plain", "plain"), ("a\nb\tc\r", #"a\nb\tc\r"#), ("\u{1b}[2J", #"\x1b[2J"#), ("\u{7f}", #"\x7f"#),
        ("\u{9b}31m", #"\u{9b}31m"#), ("\u{202e}txt", #"\u{202e}txt"#), ("caf\u{e9} \u{1f514}", "caf\u{e9} \u{1f514}"),
    ])
    func `what could steer a terminal is escaped, in bytes and in strings alike`(string: String, expected: String) {
        #expect(Printable.text(string) == expected)
        #expect(text(Array(string.utf8)) == expected)
    }

    @Test(
        arguments: [
            ([0xff], #"\xff"#), ([0x61, 0xe2, 0x82], #"a\xe2\x82"#), ([0xe2, 0x82, 0x61], #"\xe2\x82a"#),
            ([0xc0, 0xaf], #"\xc0\xaf"#), ([0xed, 0xa0, 0x80, 0x62], #"\xed\xa0\x80b"#),
            ([0xe9, 0xc3, 0xa9], #"\xe9é"#),
            ([0x00], #"\x00"#),
        ] as [([UInt8], String)]
    )
    func `bytes that are not UTF-8 are shown one by one`(bytes: [UInt8], expected: String) {
        #expect(text(bytes) == expected)
    }

    @Test func `a long text is cut off`() {
        #expect(text(Array(repeating: 0x61, count: 61), limit: 60) == String(repeating: "a", count: 60) + "...")
        #expect(text(Array(repeating: 0x61, count: 60), limit: 60) == String(repeating: "a", count: 60))
        #expect(text(Array("éé".utf8), limit: 1) == "é...")
    }
}
