// SPDX-License-Identifier: Apache-2.0
//! Runs its callbacks on the main actor, as what a view shows must be changed there.
// snippet.hide

import NotifyBus

let center = NotifyCenter.session
let (titles, continuation) = AsyncStream.makeStream(of: String.self)

// snippet.show
@MainActor final class View {
    private var observation: NotifyCenter.Observation?
    private var title = ""

    func appear() async throws {
        observation = try await center.addObserver(for: "com.example.title", on: MainActor.shared) { [weak self] name in
            self?.title = name.rawValue
            // snippet.hide
            continuation.yield(name.rawValue)
            // snippet.show
        }
    }

    func disappear() {
        observation = nil
    }
}
// snippet.hide
let view = View()
try await view.appear()
try center.post("com.example.title")
for await title in titles {
    print("title", title)
    break
}
view.disappear()
