// SPDX-License-Identifier: Apache-2.0

import NotifyCoordinator
import NotifyCore
import NotifyNames

// The streams of stopped programs.
extension SimulatedAgent {
    func drain(_ id: ConnectionID, _ world: World) {
        guard let index = known.removeValue(forKey: id), case .observer(let observer) = world.bus[index].owner else {
            news.append(.drained(id))
            return news.append(.found(id, []))
        }
        send(id, .mark(id.number), world)
        world.oracle.isParked(observer)
        drains.append(Drain(id: id, connection: index, process: world.observers[observer].process))
    }

    /// Reads a piece of a stream.
    func readStream(_ place: Int, _ world: World) {
        guard drains.indices.contains(place) else { return }
        let index = drains[place].connection
        guard world.processes[drains[place].process].isStopped, world.bus[index].isOpen else {
            return finishDrain(place, world)
        }
        // The process continued, read the mark, and is stopped again: the agent waits for a while, and ends it.
        guard let message = world.bus[index].inbox.popFirst() else { return finishDrain(place, world) }
        if take(message, place, world) { finishDrain(place, world) }
    }

    /// - Returns: whether it is the mark.
    func take(_ message: FromBus, _ place: Int, _ world: World) -> Bool {
        let index = drains[place].connection
        let isTorn = world.bus[index].isTorn
        world.bus[index].isTorn = false
        switch message {
        case .post(let post):
            if isTorn {
                world.oracle.torn(post, of: world.bus[index].owner)
                drains[place].torn.append(world.posts[post].name)
            } else if world.isPost(post) {
                drains[place].found.append(post)
            }
        case .peer(let sender, .mark(drains[place].id.number)): return sender == world.bus[connection].name
        default: break
        }
        return false
    }

    func finishDrain(_ place: Int, _ world: World) {
        let index = drains[place].connection
        world.close(index)
        // The process reads too, if it is running again.
        if world.processes[drains[place].process].isStopped {
            while let message = world.bus[index].inbox.popFirst() { _ = take(message, place, world) }
        }
        let drain = drains.remove(at: place)
        news.append(.drained(drain.id))
        if world.mutation == .ignoresStream { return news.append(.found(drain.id, [])) }
        // The bus is asked who posted the names that count only from their owner when their turn comes.
        let names = drain.found.map { world.posts[$0].name }
        let plain = Set(names.filter { $0 != Subject.owned } + drain.torn)
        news.append(.found(drain.id, plain.sorted().map { Subject.names[$0] }))
        for post in drain.found where world.posts[post].name == Subject.owned {
            owned[drain.id, default: []].insert(world.posterName(of: post))
        }
    }
}
