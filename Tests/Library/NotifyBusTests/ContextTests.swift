// SPDX-License-Identifier: Apache-2.0

import NotifyBus
import TestSupport
import Testing

/// Where a call is written decides nothing: each name has one meaning, and calls that wait say so.
@Suite struct ContextTests {
    /// Everywhere but at the top level, with the calls that never block, and `await` at those that wait.
    static let right = """
        import NotifyBus

        func inATask(_ center: NotifyCenter) {
            Task { try center.post("a") }
            Task { try await center.flush() }
        }

        func inAGroup(_ center: NotifyCenter) async throws {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try center.post("a") }
                group.addTask { try await center.synchronize() }
                try await group.waitForAll()
            }
        }

        func inADefer(_ center: NotifyCenter) async throws {
            let observation = try await center.addObserver(for: "a", "b") { _ in }
            defer { observation.cancel() }
            try await center.connect()
        }

        func inAMap(_ center: NotifyCenter, _ names: [NotifyName]) async throws {
            _ = try names.map { try center.post($0) }
        }

        @MainActor func onTheMainActor(_ center: NotifyCenter) throws {
            try center.post("a")
        }

        @MainActor final class View {
            var observation: NotifyCenter.Observation?
            func appear(_ center: NotifyCenter) {
                Task { observation = try await center.addObserver(for: "a", on: MainActor.shared) { _ in } }
            }
            deinit { observation?.cancel() }
        }

        func inAnAsynchronousFunction(_ center: NotifyCenter) async throws {
            try center.post("a")
            try await center.withNotifications(matching: .everything) { for await _ in $0 {} }
            let observation = try await center.addObserver(matching: .prefix("a."), queue: .main) { _ in }
            await observation.cancelAndWait()
            await center.close()
        }

        func inAFunction(_ center: NotifyCenter) throws {
            try center.connect(timeout: .seconds(1))
            let observation = try center.addObserver(for: "a", timeout: .seconds(5)) { _ in }
            try center.post("a")
            try center.flush(timeout: nil)
            try observation.cancelAndWait(timeout: nil)
            try center.close(timeout: .seconds(1))
        }

        @main struct Program {
            static func main() async throws {}
        }

        """

    /// What waits, written as if it did not. Each line must be an error that says so.
    static let wrong = """
        import NotifyBus

        func inATask(_ center: NotifyCenter) {
            Task { try center.flush() } // is 'async' but is not marked with 'await'
        }

        func inAGroup(_ center: NotifyCenter) async throws {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try center.synchronize() } // is 'async' but is not marked with 'await'
                try await group.waitForAll()
            }
        }

        func inADefer(_ center: NotifyCenter, _ observation: NotifyCenter.Observation) async throws {
            defer { observation.cancelAndWait() } // 'async' call cannot occur in a defer body
            try await center.connect()
        }

        func inAMap(_ center: NotifyCenter, _ names: [NotifyName]) throws {
            _ = try names.map { try center.addObserver(for: $0) { _ in } } // that does not support concurrency
        }

        @MainActor func onTheMainActor(_ center: NotifyCenter) throws {
            try center.connect() // that does not support concurrency
        }

        func inAnAsynchronousFunction(_ center: NotifyCenter) async throws {
            try center.lifecycle.report(.background) // is 'async' but is not marked with 'await'
        }

        func inAFunction(_ center: NotifyCenter) throws {
            _ = try center.notifications(for: "a") // that does not support concurrency
        }

        """

    /// The calls that block, and say so, in code that must not. An error in Swift 6, and a warning in Swift 5.
    static let blocking = """
        import NotifyBus

        func inATask(_ center: NotifyCenter) {
            Task { try center.flush(timeout: nil) } // use 'await flush()'
        }

        func inAGroup(_ center: NotifyCenter) async throws {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try center.synchronize(timeout: nil) } // use 'await synchronize()'
                try await group.waitForAll()
            }
        }

        func inADefer(_ center: NotifyCenter, _ observation: NotifyCenter.Observation) async throws {
            defer { try? observation.cancelAndWait(timeout: nil) } // use 'await cancelAndWait()'
            try await center.connect()
        }

        func inAnAsynchronousFunction(_ center: NotifyCenter) async throws {
            _ = try center.addObserver(for: "a", timeout: .seconds(1)) { _ in } // use 'await addObserver(for:using:)'
            try center.connect(timeout: .seconds(1)) // use 'await connect()'
            try center.close(timeout: .seconds(1)) // use 'await close()'
            try center.lifecycle.report(.background, timeout: .seconds(1)) // use 'await report(_:)'
        }

        """

    /// With `await`, the whole top level is asynchronous.
    static let topLevel = """
        import NotifyBus

        let center = NotifyCenter.session
        let observation = try await center.addObserver(for: "a", "b") { _ in }
        try center.post("a")
        try await center.flush()
        observation.cancel()
        for await name in try await center.notifications(for: "a") {
            print(name)
            break
        }

        """

    static let blockingTopLevel = """
        import NotifyBus

        let center = NotifyCenter.session
        let observation = try center.addObserver(for: "a", "b", timeout: .seconds(5)) { _ in }
        try center.post("a")
        try center.flush(timeout: nil)
        observation.cancel()

        """

    @Test(.enabled(if: isInstalled("swiftc"), "there is no swiftc"), arguments: [5, 6])
    func `what never blocks, and what is awaited, compiles everywhere without a warning`(mode: Int) throws {
        for text in [ContextTests.right, ContextTests.topLevel, ContextTests.blockingTopLevel] {
            let result = try typecheck(text, inSwift: mode)
            #expect(result.status == 0 && result.errorOutput == "" && result.output == "", "\(result.errorOutput)")
        }
    }

    @Test(.enabled(if: isInstalled("swiftc"), "there is no swiftc"), arguments: [5, 6])
    func `what waits does not compile without await, anywhere`(mode: Int) throws {
        let result = try typecheck(ContextTests.wrong, inSwift: mode)
        #expect(result.status != 0)
        expect("error", in: ContextTests.wrong, result)
        let topLevel = try typecheck(
            "import NotifyBus\nlet center = NotifyCenter.session\ntry center.flush() // 'async'\n",
            inSwift: mode
        )
        #expect(topLevel.status != 0)
        #expect(topLevel.errorOutput.contains("main.swift:3:5: error: ") && topLevel.errorOutput.contains("'async'"))
    }

    @Test(.enabled(if: isInstalled("swiftc"), "there is no swiftc"), arguments: [5, 6])
    func `what blocks is refused in asynchronous code`(mode: Int) throws {
        let result = try typecheck(ContextTests.blocking, inSwift: mode)
        #expect((result.status == 0) == (mode == 5), "\(result.errorOutput)")
        expect(mode == 5 ? "warning" : "error", in: ContextTests.blocking, result)
    }

    /// Checks that the compiler says of each line with a comment what that says, and nothing of the others.
    private func expect(_ kind: String, in text: String, _ result: CommandResult) {
        let said = result.errorOutput.split(separator: "\n")
        for (number, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let about = said.filter { $0.contains("main.swift:\(number + 1):") && $0.contains(": \(kind): ") }
            if let comment = line.firstRange(of: " // ") {
                let words = line[comment.upperBound...]
                #expect(about.contains { $0.contains(words) }, "line \(number + 1): \(words)\n\(result.errorOutput)")
            } else {
                #expect(about.isEmpty, "\(about)")
            }
        }
    }

    /// A bus that lets no client in, so that a call that waits for it waits for ten seconds.
    @Test func `a post blocks in none of these places while a bus hangs`() async throws {
        let bus = try HangingBus(isFull: true)
        let center = NotifyCenter(bus: .address(bus.address))
        let isLate = lateness()
        try await Task { try center.post("com.example.task") }.value
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try center.post("com.example.group") }
            try await group.waitForAll()
        }
        do {
            defer { try? center.post("com.example.defer") }
            #expect(!center.isConnected)
        }
        _ = try (["com.example.map"] as [NotifyName]).map { try center.post($0) }
        try await MainActor.run { try center.post("com.example.main") }
        try center.post("com.example.function")
        #expect(center.waitingPosts == 6 || isLate())
        #expect(center.statistics.posted == 6)
        await center.close()
        #expect(center.statistics.lost == 6 || isLate())
    }
}
