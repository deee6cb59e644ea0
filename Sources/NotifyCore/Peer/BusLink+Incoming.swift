// SPDX-License-Identifier: Apache-2.0

extension BusLink {
    func tellPeer(of topic: Topic, added: Bool) {
        switch topic.key {
        case .name(let name): peer?.namesHaveChanged(names: [name.string], prefixes: [], added: added)
        case .prefix(let prefix): peer?.namesHaveChanged(names: [], prefixes: [prefix.string], added: added)
        }
    }

    func passOnSignal(_ message: BusMessage) {
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
        peer.handle(signal)
    }

    func passOnCall(_ message: BusMessage) {
        guard let connection else { return }
        if let peer, let start = message.sender, let path = message.path, let member = message.member {
            let sender = String(cString: start)
            if peer.refuses(BusCall.Head(sender: sender, message: message)) { return }
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
            if peer.handle(call) { return }
            arguments.closeDescriptors()
        }
        connection.refuseIfAsked(message)
    }
}
