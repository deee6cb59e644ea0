// SPDX-License-Identifier: Apache-2.0

extension NotifyName {
    /// Whether the name has line feeds or other control characters, of ASCII or of ISO 6429.
    package var hasControlCharacters: Bool { string.hasControlCharacters }
}

extension String {
    package var hasControlCharacters: Bool {
        unicodeScalars.contains { $0.value < 0x20 || (0x7f..<0xa0).contains($0.value) }
    }
}
