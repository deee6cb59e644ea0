// SPDX-License-Identifier: Apache-2.0
//! Asks another program something, and waits for its answer, but not for long.
// snippet.hide

import NotifyBus

let center = NotifyCenter.session
let server = NotifyCenter(bus: .session)
let observation = try await server.addObserver(for: "com.example.ping") { _ in try? server.post("com.example.pong") }

// snippet.show
func ask() async throws {
    do {
        let answer = try await center.next(of: "com.example.pong", timeout: .seconds(5)) {
            // From here on every post is heard.
            try center.post("com.example.ping")
        }
        print("heard", answer)
    } catch NotifyBusError.Code.timedOut {
        print("nobody has answered")
    }
}
// snippet.hide
try await ask()
