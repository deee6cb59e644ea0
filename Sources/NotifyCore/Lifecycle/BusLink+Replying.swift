// SPDX-License-Identifier: Apache-2.0

// Replies to calls of which only sender and serial are known.
extension BusLink {
    func reply(to call: ObserverLifecycle.Call, _ arguments: [BusValue] = []) {
        guard call.wantsReply else { return }
        _ = observing.connection?.send(.reply(destination: call.sender, serial: call.serial), arguments)
    }

    func refuse(_ call: ObserverLifecycle.Call, _ fault: BusFault) {
        guard call.wantsReply else { return }
        let draft = BusConnection.Draft.error(destination: call.sender, serial: call.serial, name: fault.name)
        _ = observing.connection?.send(draft, [.string(fault.message)])
    }
}
