// SPDX-License-Identifier: Apache-2.0

// Replies to calls of which only sender and serial are known.
extension BusLink {
    func reply(to call: ObserverLifecycle.Call, _ arguments: [BusValue] = []) {
        guard call.wantsReply else { return }
        _ = connection?.send(.reply(to: call.sender, call.serial, arguments))
    }

    func refuse(_ call: ObserverLifecycle.Call, _ fault: BusFault) {
        guard call.wantsReply else { return }
        _ = connection?.send(.error(to: call.sender, call.serial, name: fault.name, fault.message))
    }
}
