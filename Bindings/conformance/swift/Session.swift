// SPDX-License-Identifier: Apache-2.0

// NotifyBus in Swift, told by lines what to do: see Bindings/README.md.

import Glibc
import NotifyBus
import Synchronization

/// Lines of several tasks, one after the other.
struct Output: Sendable {
    private static let lock = Mutex(())

    func say(_ words: String...) {
        Output.lock.withLock { _ in
            // Not by print: flushing waits for the thread that reads the standard input.
            var line = Array((words.joined(separator: " ") + "\n").utf8)[...]
            while !line.isEmpty {
                let count = line.withUnsafeBytes { write(STDOUT_FILENO, $0.baseAddress, $0.count) }
                if count < 0 && errno != EINTR { exit(74) }
                line = line.dropFirst(max(0, count))
            }
        }
    }
}

/// Whether notifications are taken.
actor Gate {
    private var isClosed = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    func pass() async {
        if isClosed { await withCheckedContinuation { waiting.append($0) } }
    }

    func close() { isClosed = true }

    func open() {
        isClosed = false
        for continuation in waiting { continuation.resume() }
        waiting = []
    }
}

struct Unsupported: Error {}

@main
struct Session {
    let center = NotifyCenter.session
    let output = Output()
    let gate = Gate()
    var observers: [String: (NotifyCenter.Notifications, Task<Void, Never>)] = [:]

    static func main() async {
        var session = Session()
        session.follow()
        while let line = readLine() {
            let words = line.split(separator: " ").map(String.init)
            do {
                try await session.perform(words)
                session.output.say("done")
            } catch {
                _ = "\(line): \(error)\n".withCString { write(STDERR_FILENO, $0, strlen($0)) }
                session.output.say("failed", kind(of: error))
            }
        }
        try? await session.center.synchronize()
    }

    private static func kind(of error: any Error) -> String {
        switch error {
        case is Unsupported: return "unsupported"
        case let error as NotifyBusError:
            switch error.code {
            case .invalidName: return "invalid"
            case .noBus, .disconnected: return "nobus"
            case .queueFull: return "full"
            default: return "failed"
            }
        default: return "failed"
        }
    }

    private func follow() {
        let changes = center.connectionChanges()
        Task.detached { [output] in
            for await change in changes { output.say(change.kind == .connected ? "connected" : "disconnected") }
        }
        guard let states = try? center.lifecycle.changes() else { return }
        Task.detached { [output] in
            for await state in states { output.say("state", "\(state)") }
        }
    }

    private mutating func perform(_ words: [String]) async throws {
        switch words[0] {
        case "observe":
            let names = try await observe(words.dropFirst(2))
            // The main thread waits for the next line.
            let task = Task.detached { [output, gate] in
                var iterator = names.makeAsyncIterator()
                while true {
                    await gate.pass()
                    guard let name = await iterator.next() else { return }
                    output.say("heard", words[1], "n" + hex(name.description.utf8))
                }
            }
            observers[words[1]] = (names, task)
        case "cancel":
            guard let (names, task) = observers.removeValue(forKey: words[1]) else { return }
            names.cancel()
            await task.value
        case "post":
            let name = try self.name(words[1])
            if !name.description.hasPrefix("self.") { try await center.connect() }
            try center.post(name)
            if !name.description.hasPrefix("self.") { try await center.synchronize() }
        case "many":
            let name = try self.name(words[2])
            for _ in 0..<(Int(words[1]) ?? 0) { try center.post(name) }
            try await center.synchronize()
        case "slow": await gate.close()
        case "fast": await gate.open()
        case "report":
            try await center.lifecycle.report(words[1] == "background" ? .background : .foreground)
        default: throw Unsupported()
        }
    }

    private func observe(_ words: ArraySlice<String>) async throws -> NotifyCenter.Notifications {
        let prefixes = words.filter { $0.hasPrefix("p") }
        if prefixes.isEmpty { return try await center.notifications(matching: .names(words.map { try name($0) })) }
        // The sentinel, which is a name, is included in everything but not in a prefix.
        var subjects = try words.filter { $0.hasPrefix("n") }.map { NotifySubject.name(try name($0)) }
        for prefix in prefixes {
            let text = String(decoding: bytes(prefix), as: UTF8.self)
            subjects.append(text.isEmpty ? .everything : .prefix(try NotifyPrefix(text)))
        }
        return try await center.notifications(matching: .any(of: subjects))
    }

    private func name(_ word: String) throws -> NotifyName {
        try bytes(word).withUnsafeBytes { try NotifyName(utf8: $0) }
    }
}

/// The bytes of a word: a letter, and two hexadecimal digits for each byte.
private func bytes(_ word: String) -> [UInt8] {
    let digits = Array(word.dropFirst())
    return stride(from: 0, to: digits.count, by: 2).compactMap { UInt8(String(digits[$0...$0 + 1]), radix: 16) }
}

private func hex(_ bytes: some Sequence<UInt8>) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}
