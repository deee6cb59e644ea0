// SPDX-License-Identifier: Apache-2.0

import Glibc

/// What is sent and received on the connection, with the lock held.
extension Outbox {
    func read(_ events: Int16, _ state: inout State) {
        guard let connection = state.connection else { return }
        connection.report(events)
        while let message = connection.next() {
            switch message.kind {
            case .reply, .error:
                if let barrier = state.launcherBarriers.remove(UInt64(message.replySerial)) {
                    // A forged reply only makes this program exit sooner.
                    barrier.complete(.success(()))
                    continue
                }
                // Anybody may send something that looks like a reply.
                guard message.isFromBus else { continue }
                if state.pace.take(message) { continue }
                state.barriers.remove(UInt64(message.replySerial))?.complete(.success(()))
            case .call where message.wantsReply && state.rest.count < Outbox.batchSize,
                .longCall where message.wantsReply && state.rest.count < Outbox.batchSize:
                // Sent in turn: between whole messages, and in bounded numbers.
                if let refusal = OutgoingMessage.refusal(of: message) { append(refusal, &state) }
            case .disconnected:
                return lose(&state)
            case .signal, .call, .longCall, .invalid: continue
            }
        }
    }

    /// Writes what is queued, as far as the socket accepts it and the bus is not too far behind.
    func drain(_ state: inout State) {
        guard state.link == .open, let connection = state.connection else { return }
        guard connection.isOurs else { return lose(&state) }
        while true {
            if state.rest.isEmpty {
                state.queue.noteWritten()
                state.completeFlushes()
                fill(&state)
                if state.rest.isEmpty { return }
            }
            state.rest.flush(to: connection.descriptor)
            if state.rest.isBroken { return lose(&state) }
            if !state.rest.isEmpty { return }
        }
    }

    /// Prepares what may be written next.
    private func fill(_ state: inout State) {
        askWhatIsDue(&state)
        while state.rest.count < Outbox.batchSize, !state.pace.isFull, let name = state.queue.beginNext() {
            state.rest.append(state.templates.bytes(for: name, serial: state.nextSerial()))
            state.pace.notePost()
            askWhatIsDue(&state)
        }
    }

    /// Asks the questions that follow what has been taken out of the queue.
    private func askWhatIsDue(_ state: inout State) {
        if state.pace.wantsQuestion { askAboutPosts(&state) }
        while let next = state.laterBarriers.first, next.position <= state.queue.dequeued {
            state.laterBarriers.removeFirst()
            switch next.question {
            case .bus: state.barriers.set(next.barrier, for: UInt64(ask(.anything, &state)))
            case .launcher: state.launcherBarriers.set(next.barrier, for: UInt64(askLauncher(&state)))
            }
        }
    }

    /// Asks a question after the last post.
    func askLast(_ state: inout State) {
        if !state.pace.isAsked { askAboutPosts(&state) }
        drain(&state)
    }

    private func askAboutPosts(_ state: inout State) {
        let question = state.pace.nextQuestion
        state.pace.note(question, ask(question, &state))
    }

    private func ask(_ question: PostingPace.Question, _ state: inout State) -> UInt32 {
        ExitFlush.cover(self)
        return switch question {
        case .anything: append(.busCall("GetId"), &state)
        case .queues: append(.busCall(BrokerQueues.member, of: BrokerQueues.interface), &state)
        }
    }

    private func askLauncher(_ state: inout State) -> UInt32 {
        append(.launcherPing, &state)
    }

    /// - Returns: the serial of the reply.
    @discardableResult
    private func append(_ message: OutgoingMessage, _ state: inout State) -> UInt32 {
        let serial = state.nextSerial()
        message.bytes(serial: serial)?.withUnsafeBytes { state.rest.append($0) }
        return serial
    }
}

extension Outbox.State {
    /// Whether something could be written if the socket accepted it.
    var canWrite: Bool { !rest.isEmpty || (queue.hasNext && !pace.isFull) }

    fileprivate mutating func completeFlushes() {
        while let first = flushes.first, queue.written >= first.target {
            flushes.removeFirst()
            first.barrier.complete(.success(()))
        }
    }
}
