// SPDX-License-Identifier: Apache-2.0

import NotifyAgent
import TestSupport
import Testing

/// The files installed for desktops, as far as they can be checked without one.
@Suite struct DesktopFilesTests {
    private func text(_ path: String) throws -> String { try readFile("\(packageFolder)/\(path)") }

    @Test func `the KWin script has the metadata that KWin requires, and calls a method that the agent has`() throws {
        let folder = "desktop/kwin/notifybus-focus"
        let metadata = try #require(JSONValue(Array(try text("\(folder)/metadata.json").utf8)))
        #expect(metadata["KPackageStructure"]?.text == "KWin/Script")
        #expect(metadata["KPlugin"]?["Id"]?.text == "notifybus-focus")
        #expect(metadata["X-Plasma-MainScript"]?.text == "code/main.js")
        let script = try text("\(folder)/contents/code/main.js")
        #expect(script.contains(#"callDBus(agent, "/org/notifybus/Agent1", agent, "SetForeground", pid)"#))
        #expect(script.contains(#"registerShortcut("NotifyBus focus", "#))
        let interface = try text("Sources/Agent/NotifyAgent/Interface/org.notifybus.Agent1.xml")
        #expect(interface.contains(#"<method name="SetForeground">"#))
    }

    @Test(arguments: anyBusKind())
    func `the first observer makes the agent ask KWin's script for the focus, and a new agent asks again`(kind: BusKind)
        throws
    {
        let scene = try Scene(kind)
        let shortcuts = try RawBusClient(address: scene.bus.address)
        var body = RawBody()
        body.append("org.kde.kglobalaccel")
        body.append(UInt32(0))
        #expect(try shortcuts.callBus("RequestName", signature: "su", body: body.bytes).uint32 == 1)
        func nextCall() throws -> RawMessage {
            while true {
                let message = try shortcuts.readMessage()
                if message.kind == .call { return message }
            }
        }
        let observer = try scene.startObserver()
        for _ in 1...2 {
            let call = try nextCall()
            #expect(call.path == "/component/kwin" && call.interface == "org.kde.kglobalaccel.Component")
            #expect(call.member == "invokeShortcut" && call.string == "NotifyBus focus")
            #expect(call.flags & 1 == 1, "the agent waits for no answer")
            try scene.restartAgent()
        }
        withExtendedLifetime(observer) {}
    }

    @Test(arguments: anyBusKind())
    func `SetForeground accepts the numbers of languages with a single number type, and nothing else`(kind: BusKind)
        throws
    {
        let agent = try AgentBus(kind)
        let client = try RawBusClient(address: agent.bus.address)
        func call(_ signature: String, _ body: [UInt8]) throws -> String? {
            try client.callAgent("SetForeground", signature: signature, body: body).errorName
        }
        // 1 as u, i and d; then -1, 1.5, 2³¹, a string, no argument, two.
        #expect(try call("u", [1, 0, 0, 0]) == nil)
        #expect(try call("i", [1, 0, 0, 0]) == nil)
        #expect(try call("d", [0, 0, 0, 0, 0, 0, 0xf0, 0x3f]) == nil)
        let wrong = "org.freedesktop.DBus.Error.InvalidArgs"
        #expect(try call("i", [0xff, 0xff, 0xff, 0xff]) == wrong)
        #expect(try call("d", [0, 0, 0, 0, 0, 0, 0xf8, 0x3f]) == wrong)
        #expect(try call("d", [0, 0, 0, 0, 0, 0, 0xf0, 0x7f]) == wrong)
        #expect(try call("u", [0, 0, 0, 0x80]) == wrong)
        #expect(try call("s", RawBusClient.stringBody("1")) == wrong)
        #expect(try call("", []) == wrong)
        #expect(try call("uu", [1, 0, 0, 0, 1, 0, 0, 0]) == wrong)
        try agent.checkAlive()
    }
}
