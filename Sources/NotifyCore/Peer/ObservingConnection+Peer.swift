// SPDX-License-Identifier: Apache-2.0

extension ObservingConnection {
    func tellPeer(of topic: Topic, added: Bool, on engine: Engine) {
        let link = BusLink(observing: self, engine: engine)
        switch topic.key {
        case .name(let name): peer?.namesHaveChanged(names: [name.string], prefixes: [], added: added, link)
        case .prefix(let prefix): peer?.namesHaveChanged(names: [], prefixes: [prefix.string], added: added, link)
        }
    }

    func passOnSignal(_ message: BusMessage, on engine: Engine) {
        guard let peer, let connection, let sender = message.sender, let path = message.path,
            let interface = message.interface, let member = message.member, let arguments = connection.arguments()
        else { return }
        let signal = BusSignal(
            sender: String(cString: sender),
            path: String(cString: path),
            interface: String(cString: interface),
            member: String(cString: member),
            arguments: arguments
        )
        peer.handle(signal, on: BusLink(observing: self, engine: engine))
    }

    func passOnCall(_ message: BusMessage, on engine: Engine) {
        guard let connection else { return }
        if let peer, let start = message.sender, let path = message.path, let member = message.member {
            let sender = String(cString: start)
            let link = BusLink(observing: self, engine: engine)
            if peer.refuses(BusCall.Head(sender: sender, message: message), on: link) { return }
            guard let arguments = connection.arguments() else { return connection.refuseIfAsked(message) }
            let call = BusCall(
                sender: sender,
                serial: message.serial,
                path: String(cString: path),
                // A call may omit the interface.
                interface: message.interface.map { String(cString: $0) } ?? "",
                member: String(cString: member),
                wantsReply: message.wantsReply,
                arguments: arguments,
                size: message.bytes.count,
                hasDescriptors: message.descriptorCount > 0
            )
            if peer.handle(call, on: link) { return }
            arguments.closeDescriptors()
        }
        connection.refuseIfAsked(message)
    }
}
