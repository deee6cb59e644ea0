// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore
import NotifyEvents

/// A source of facts on a thread of its own, which may hang for as long as what it talks to hangs: a source of events does
/// the same work, with the same driver that begins it again when it has failed.
final class ThreadedSource: LifecycleSource {
    private let name: String
    private let outlet: FactOutlet
    private let make: @Sendable (FactOutlet) -> any Source
    private let thread = Monitor<EventThread?>(nil)

    /// - Parameter make: called on the thread.
    init(_ name: String, _ outlet: FactOutlet, _ make: @escaping @Sendable (FactOutlet) -> any Source) {
        (self.name, self.outlet, self.make) = (name, outlet, make)
    }

    func start() {
        do throws(NotifyBusError) {
            let thread = try EventThread(name: name)
            self.thread.withLock { $0 = thread }
            thread.perform { [name, outlet, make] loop in
                let driver = SourceDriver(make(outlet), on: loop) { outlet.say($0.map { .off($0) } ?? .live) }
                loop.drivers[name] = driver
                driver.begin()
            }
        } catch {
            outlet.say(.off(error.description))
        }
    }

    func stop() {
        outlet.close()
        thread.withLock { $0 }?.stop()
    }
}
