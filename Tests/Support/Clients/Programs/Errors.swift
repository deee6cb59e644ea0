// SPDX-License-Identifier: Apache-2.0

import NotifyBus

/// Errors by their code.
func wait(_ center: NotifyCenter) async throws -> Bool {
    do {
        _ = try await center.next(of: "com.example.done", timeout: .seconds(1))
        return true
    } catch NotifyBusError.Code.timedOut {
        return false
    }
}

func postIfThereIsABus(_ center: NotifyCenter) throws {
    do {
        try center.connect(timeout: .seconds(1))
        try center.post("com.example.done")
    } catch let error where error.code == .noBus {
        print(error)
    }
}

func observe(_ text: String, _ center: NotifyCenter) -> NotifyCenter.Observation? {
    do throws(NotifyBusError) {
        return try center.addObserver(for: NotifyName(text), timeout: .seconds(5)) { print($0) }
    } catch {
        switch error.code {
        case .invalidName, .notPermitted: print("wrong name:", error)
        case .noBus, .disconnected, .timedOut: print("try later:", error)
        default: print(error)
        }
        return nil
    }
}

/// A stand-in for a center in a test may throw and say the same.
struct Unreachable {
    func post(_ name: NotifyName) throws(NotifyBusError) {
        throw NotifyBusError(.notPermitted, "'\(name)' belongs to another user.")
    }

    var change: NotifyCenter.ConnectionChange { .disconnected(NotifyBusError(.noBus, "There is no bus.")) }
}

/// A bus for tests.
func pingIsAnswered() async throws -> Bool {
    let bus = NotifyCenter.Bus.inProcess()
    let (server, client) = (NotifyCenter(bus: bus), NotifyCenter(bus: bus))
    let observation = try await server.addObserver(for: "com.example.ping") { _ in try? server.post("com.example.pong")
    }
    defer { observation.cancel() }
    bus.disconnect()
    bus.reconnect()
    return try await client.next(of: "com.example.pong", timeout: .seconds(5)) {
        try client.post("com.example.ping")
    } == "com.example.pong"
}

/// Values that may get more cases.
func describe(_ center: NotifyCenter, _ change: NotifyCenter.ConnectionChange) -> [String] {
    var texts: [String] = []
    switch change.kind {
    case .disconnected: texts.append("away")
    case .connected: texts.append("there")
    default: break
    }
    switch center.lifecycle.state {
    case .foreground: texts.append("foreground")
    case .background, .suspended: texts.append("silent")
    default: break
    }
    switch center.visibility {
    case .everyone: break
    case .ownProgram: texts.append("alone")
    default: break
    }
    switch center.bus {
    case .session, .system: break
    case .address("unix:path=/tmp/bus"): texts.append("own bus")
    default: break
    }
    return texts
}
