// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import NotifyTokens
import TestSupport
import Testing

/// notify(3) on a private bus, and a center that posts as another program.
final class NotifyRoom: Sendable {
    let bus: PrivateBus
    let engine: TokenEngine
    /// The engine's own center.
    let center: NotifyCenter
    /// Another program's center.
    let other: NotifyCenter
    /// What C callbacks are passed; kept until none is called any more.
    private let contexts = Recorder<CallbackContext>()

    init(_ kind: BusKind) throws {
        bus = try PrivateBus(kind)
        center = NotifyCenter(bus: .address(bus.address))
        engine = TokenEngine(center: center)
        other = NotifyCenter(bus: .address(bus.address))
    }

    deinit {
        engine.close()
        try? center.close(timeout: nil)
        try? other.close(timeout: nil)
    }

    /// Posts as another program, and waits until the engine has heard everything posted before.
    func post(_ names: String...) throws {
        for name in names { try other.postOnceConnected(NotifyName(name)) }
        try settle()
    }

    /// Waits until the engine has processed all earlier posts, its own and others'.
    func settle() throws {
        try other.synchronize(timeout: .patience)
        try center.synchronize(timeout: .patience)
        try center.barrier(timeout: .patience)
    }

    func register(_ name: String, _ wish: TokenEngine.Wish = .none) throws -> Int32 {
        var token: Int32 = 0
        try engine.register(name, wish, token: &token)
        return token
    }

    func registerCallback(_ name: String, _ body: @escaping @Sendable (Int32) -> Void) throws -> Int32 {
        let context = CallbackContext(body)
        contexts.append(context)
        return try register(name, .callback(context.function))
    }

    func registerPipe(_ name: String, reusing other: Int32? = nil) throws -> (token: Int32, descriptor: Int32) {
        var token: Int32 = 0
        var descriptor = other ?? -1
        try engine.register(name, descriptor: &descriptor, flags: other == nil ? 0 : 1, token: &token)
        return (token, descriptor)
    }
}

/// The context of a C function, which runs a closure.
final class CallbackContext: Sendable {
    private let body: @Sendable (Int32) -> Void
    init(_ body: @escaping @Sendable (Int32) -> Void) { self.body = body }

    /// It does not retain this.
    var function: CallbackTarget.Function {
        CallbackTarget.Function(
            { token, context in
                guard let context else { return }
                Unmanaged<CallbackContext>.fromOpaque(context).takeUnretainedValue().body(token)
            },
            Unmanaged.passUnretained(self).toOpaque()
        )
    }
}

/// What an engine threw.
func status(_ body: () throws -> Void) -> NotifyStatus? {
    do {
        try body()
        return .ok
    } catch {
        return error as? NotifyStatus
    }
}

/// Asks the agent again if it was too slow for the engine, as on a busy machine.
func inTime<Answer>(_ ask: () throws -> Answer) throws -> Answer {
    var answer = Result { try ask() }
    _ = waitUntil {
        guard case .failure(NotifyStatus.failed) = answer else { return true }
        answer = Result { try ask() }
        return false
    }
    return try answer.get()
}

/// The next token in a pipe; nil if there is none.
func nextToken(_ descriptor: Int32) -> Int32? {
    var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    guard poll(&request, 1, 0) == 1 else { return nil }
    var token: Int32 = 0
    return read(descriptor, &token, 4) == 4 ? Int32(bigEndian: token) : nil
}

/// All tokens in a pipe.
func tokens(in descriptor: Int32) -> [Int32] {
    var all: [Int32] = []
    while let token = nextToken(descriptor) { all.append(token) }
    return all
}
