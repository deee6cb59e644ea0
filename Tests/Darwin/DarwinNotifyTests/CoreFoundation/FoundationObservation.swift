// SPDX-License-Identifier: Apache-2.0

import Foundation

/// An observer in Foundation's center.
///
/// In a file that doesn't import Testing: a file that imports both needs a library that Debian's Swift doesn't have.
struct FoundationObservation {
    private let observer: any NSObjectProtocol

    init(of name: String, _ body: @escaping @Sendable () -> Void) {
        observer = NotificationCenter.default.addObserver(
            forName: Notification.Name(name),
            object: nil,
            queue: nil
        ) { _ in body() }
    }

    static func post(_ name: String) {
        NotificationCenter.default.post(name: Notification.Name(name), object: nil)
    }

    func end() { NotificationCenter.default.removeObserver(observer) }
}
