// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import NotifyCore

/// What the other threads tell the main thread.
enum BridgeEvent: Sendable {
    /// The bridge owns its name on the bus.
    case isServing
    case cannotServe(String)
    case busIsLost(NotifyBusError)
    case brokerEnded(BrokerLink.End)
}

/// The bridge on the bus: one bridge owns `org.notifybus.Bridge1`, and reports its status there.
final class StatusService: BusPeer {
    private static let name = "org.notifybus.Bridge1"
    private static let path = "/org/notifybus/Bridge1"

    private let broker: BrokerAddress
    private let exchange: Exchange
    private let inbox: Mailbox<BridgeEvent>
    private var link: BusLink?

    init(_ broker: BrokerAddress, _ exchange: Exchange, _ inbox: Mailbox<BridgeEvent>) {
        self.broker = broker
        self.exchange = exchange
        self.inbox = inbox
    }

    /// When the bus is gone, the manager of the bridge restarts it.
    var keepsConnection: Bool { false }

    func linkIsReady(_ link: BusLink) {
        self.link = link
        // DO_NOT_QUEUE
        link.callBus("RequestName", [.string(Self.name), .uint32(4)]) { [inbox] answer in
            switch answer {
            // PRIMARY_OWNER
            case .success(let values) where values.first?.uint32 == 1: inbox.put(.isServing)
            case .success:
                inbox.put(.cannotServe("Another bridge already serves this bus: it owns \(Self.name)."))
            case .failure(let fault):
                inbox.put(.cannotServe("The bus does not let this bridge own \(Self.name): \(fault.message)"))
            }
        }
    }

    func linkIsLost(_ error: NotifyBusError) {
        link = nil
        inbox.put(.busIsLost(error))
    }

    func handle(_ signal: BusSignal) {}

    func refuses(_ call: BusCall.Head) -> Bool { link?.mayAnswerStrangers != true }

    func handle(_ call: BusCall) -> Bool {
        switch (call.interface, call.member) {
        case ("org.freedesktop.DBus.Peer", "Ping"): link?.reply(to: call)
        case ("org.freedesktop.DBus.Introspectable", "Introspect"): link?.reply(to: call, [.string(Self.introspection)])
        case (Self.name, "Status") where call.path == Self.path: link?.reply(to: call, [status])
        default: return false
        }
        return true
    }

    private var status: BusValue {
        func number(_ count: Int) -> BusValue { .uint64(UInt64(clamping: count)) }
        let status = exchange.status
        return .dictionary([
            ("broker", .string(broker.description)), ("connected", .boolean(status.isConnected)),
            ("since", .uint64(status.since)), ("sent", number(status.sent)), ("received", number(status.received)),
            ("merged", number(status.merged)), ("waiting", number(status.waiting)),
            ("refused", number(status.refused)), ("duplicates", number(status.duplicates)),
            ("lost", number(status.lost)), ("filters", .strings(status.filters)),
        ])
    }

    private static let introspection = """
        <!DOCTYPE node PUBLIC "-//freedesktop//DTD D-BUS Object Introspection 1.0//EN"
         "http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd">
        <node>
          <interface name="org.notifybus.Bridge1">
            <method name="Status"><arg name="status" type="a{sv}" direction="out"/></method>
          </interface>
          <interface name="org.freedesktop.DBus.Introspectable">
            <method name="Introspect"><arg name="xml" type="s" direction="out"/></method>
          </interface>
          <interface name="org.freedesktop.DBus.Peer"><method name="Ping"/></interface>
        </node>
        """
}
