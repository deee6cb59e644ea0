// SPDX-License-Identifier: Apache-2.0

import NotifyBus

/// Several sequences at once.
func followAll(_ center: NotifyCenter) async throws {
    let (first, second) = (
        try await center.notifications(for: "com.example.a"),
        try await center.notifications(matching: .prefix("com.example.b."))
    )
    await withTaskGroup(of: Void.self) { group in
        for sequence in [first, second] {
            group.addTask {
                for await name in sequence { print(name) }
            }
        }
    }
}

/// Whichever comes first.
func first(of names: [NotifyName], _ center: NotifyCenter) async throws -> NotifyName? {
    try await withThrowingTaskGroup(of: NotifyName.self) { group in
        for name in names {
            group.addTask { try await center.next(of: name) }
        }
        defer { group.cancelAll() }
        return try await group.next()
    }
}

/// A timeout made by hand.
func firstInTime(_ center: NotifyCenter) async throws -> NotifyName? {
    let notifications = try await center.notifications(for: "com.example.done")
    return try await withThrowingTaskGroup(of: NotifyName?.self) { group in
        group.addTask {
            for await name in notifications { return name }
            return nil
        }
        group.addTask {
            try await Task.sleep(for: .seconds(1))
            return nil
        }
        defer { group.cancelAll() }
        return try await group.next() ?? nil
    }
}

/// Observing in child tasks, and posting.
func observeInGroup(_ center: NotifyCenter) async throws {
    try await withThrowingDiscardingTaskGroup { group in
        group.addTask {
            for await name in try await center.notifications(for: "com.example.a") { print(name) }
        }
        group.addTask { try center.post("com.example.a") }
    }
}
