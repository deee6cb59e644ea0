// SPDX-License-Identifier: Apache-2.0

extension BusLink {
    /// Processes what has been read, up to the next post that has observers.
    func nextArrival() -> Arrival? {
        while true {
            guard let connection else { return nil }
            if isUndisturbed {
                if let message = connection.peek(), let post = posts.find(message) {
                    connection.passOver(message)
                    if let arrival = arrival(of: post) { return arrival }
                    continue
                }
            } else if let arrival = nextReplayed() ?? nextRelayed()
                ?? nextVerified()
            {
                return arrival
            }
            if let sliceEnd, sliceEnd <= .now {
                isBehind = true
                return nil
            }
            guard let message = connection.next() else { return nil }
            switch message.kind {
            case .signal:
                if let arrival = arrival(from: message) { return arrival }
                if !message.looksLikePost { passOnSignal(message) }
            case .reply, .error:
                if let question = questions.end(with: message) { answer(question, with: message) }
            case .call:
                passOnCall(message)
            case .longCall:
                if message.wantsReply { connection.refuse(message) }
            case .invalid:
                counters.ignored.increment()
            case .disconnected:
                lose(BusConnection.lossError(bus.title))
            }
        }
    }

    private func welcome(_ message: BusMessage) {
        if message.kind == .reply {
            uniqueName = message.text.map { String(decoding: $0, as: UTF8.self) } ?? ""
            becomeReady()
        } else {
            lose(message.refusalError(by: bus.title))
        }
    }

    func answer(_ question: Question, with message: BusMessage) {
        switch question {
        case .hello:
            welcome(message)
        case .rule(let topic, generation):
            ruleAnswered(for: topic, message.ruleOutcome(by: bus.title))
            peer?.ruleIsAnswered()
        case .wideRule(generation):
            wideRuleAnswered(message.ruleOutcome(by: bus.title))
            peer?.ruleIsAnswered()
        case .rule, .wideRule:
            break  // About rules that have been taken off since.
        case .call(let completion):
            let values = message.kind == .reply ? connection?.arguments() : nil
            let fault = BusFault(
                name: message.errorName.map { String(cString: $0) } ?? "org.freedesktop.DBus.Error.Failed",
                message: message.text.map { String(decoding: $0, as: UTF8.self) } ?? ""
            )
            completion(values.map { .success($0) } ?? .failure(fault))
        case .barrier(let barrier):
            enqueueLast { barrier.complete(.success(())) }
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
