// SPDX-License-Identifier: Apache-2.0

import NotifyCore
import NotifyNames

// Posts arrive, and registrations are called.
extension SimulatedObserver {
    func arrived(_ post: Int, _ world: World) {
        let name = world.posts[post].name
        // With wide rules there are posts of names that the program does not observe.
        if reach.hearsEverything, !topics.indices.contains(where: { topics[$0] != nil && Subject.matches($0, name) }) {
            return
        }
        guard lifecycle.isOpen, world.isPost(post) else { return }
        let sender = world.posterName(of: post)
        switch senders.judge(post, world.posts[post], from: sender, world.mutation) {
        case .believed: hear(post, world)
        case .asks: askBus(.sender(sender), world)
        case .held, .refused: break
        }
    }

    func replay(_ world: World) {
        while let name = lifecycle.takeReplayed() {
            guard let number = Subject.number(of: name) else { continue }
            let audience = audience(of: number, world)
            world.oracle.replayed(number, self.number, by: audience)
            if world.setting.scarcity.slowCallbacks { callbacks.take(number, for: audience, world) }
        }
    }

    /// The registrations that are called for a name.
    func audience(of name: Int, _ world: World) -> [Int] {
        var all: [Int] = []
        all.reserveCapacity(registrations.count)
        for one in registrations where Subject.matches(one.subject, name) {
            all.append(one.registration)
            if world.mutation == .callsOne { break }
        }
        return all
    }

    func hear(_ post: Int, _ world: World) {
        let name = world.posts[post].name
        let audience = audience(of: name, world)
        world.oracle.heard(post, name, number, by: audience)
        if world.setting.scarcity.slowCallbacks { callbacks.take(name, for: audience, world) }
    }
}
