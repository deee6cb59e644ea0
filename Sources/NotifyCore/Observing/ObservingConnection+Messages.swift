// SPDX-License-Identifier: Apache-2.0

extension ObservingConnection {
    /// Processes what has been read, up to the next post that has observers.
    func nextArrival(on engine: Engine) -> Arrival? {
        while true {
            guard let connection else { return nil }
            if isUndisturbed {
                if let message = connection.peek(), let post = posts.find(message) {
                    connection.passOver(message)
                    if let arrival = arrival(of: post, on: engine) { return arrival }
                    continue
                }
            } else if let arrival = nextReplayed(on: engine) ?? nextRelayed(on: engine)
                ?? nextVerified(on: engine)
            {
                return arrival
            }
            guard let message = connection.next() else { return nil }
            switch message.kind {
            case .signal:
                if let arrival = arrival(from: message, on: engine) { return arrival }
                if !message.looksLikePost { passOnSignal(message, on: engine) }
            case .reply, .error:
                if let question = questions.end(with: message) { answer(question, with: message, on: engine) }
            case .call:
                passOnCall(message, on: engine)
            case .longCall:
                if message.wantsReply { connection.refuse(message) }
            case .useless:
                engine.counters.ignored.increment()
            case .disconnected:
                lose(BusConnection.lossError(bus.title), on: engine)
            }
        }
    }

    private func welcome(_ message: BusMessage, on engine: Engine) {
        if message.kind == .reply {
            uniqueName = message.text.map { String(decoding: $0, as: UTF8.self) } ?? ""
            becomeReady(on: engine)
        } else {
            lose(message.refusalError(by: bus.title), on: engine)
        }
    }

    func answer(_ question: Question, with message: BusMessage, on engine: Engine) {
        switch question {
        case .hello:
            welcome(message, on: engine)
        case .rule(let topic, generation):
            ruleAnswered(for: topic, message.ruleOutcome(by: bus.title), on: engine)
            peer?.ruleIsAnswered(BusLink(observing: self, engine: engine))
        case .wideRule(generation):
            wideRuleAnswered(message.ruleOutcome(by: bus.title), on: engine)
            peer?.ruleIsAnswered(BusLink(observing: self, engine: engine))
        case .rule, .wideRule:
            break  // About rules that have been taken off since.
        case .call(let completion):
            let values = message.kind == .reply ? connection?.arguments() : nil
            let fault = BusFault(
                name: message.errorName.map { String(cString: $0) } ?? "org.freedesktop.DBus.Error.Failed",
                message: message.text.map { String(decoding: $0, as: UTF8.self) } ?? ""
            )
            completion(values.map { .success($0) } ?? .failure(fault), BusLink(observing: self, engine: engine))
        case .barrier(let barrier):
            engine.enqueueLast { barrier.complete(.success(())) }
        }
    }
}

extension BusMessage {
    enum RuleOutcome {
        case accepted, limitReached, refused(NotifyBusError)

        var isAccepted: Bool { if case .accepted = self { true } else { false } }
    }

    /// The bus's reply to AddMatch.
    func ruleOutcome(by title: String) -> RuleOutcome {
        if kind == .reply { return .accepted }
        if errorName.map({ String(cString: $0) }) == "org.freedesktop.DBus.Error.LimitsExceeded" {
            return .limitReached
        }
        return .refused(refusalError(by: title, code: .failed))
    }

    func refusalError(by title: String, code: NotifyBusError.Code = .noBus) -> NotifyBusError {
        let reason = text.map { String(decoding: $0, as: UTF8.self) } ?? "it gave no reason"
        return NotifyBusError(
            code,
            "The request was refused by \(title): \(reason).",
            busErrorName: errorName.map { String(cString: $0) }
        )
    }
}
