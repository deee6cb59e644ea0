// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyCore
import TestSupport
import Testing

/// Many sandboxes at once, each behind a proxy of its own: 200 with `NOTIFYBUS_LONG=1`.
@Suite(.enabled(if: FlatpakSandbox.obstacle == nil, "\(FlatpakSandbox.obstacle ?? "")"))
struct CrowdTests {
    @Test(.serialized, arguments: busKinds)
    func `each of many sandboxes hears everything, and the agent's memory is bounded`(kind: BusKind) async throws {
        try handOver(kind.rawValue, to: "crowd")
        await #expect(processExitsWith: .success) {
            let kind = try BusKind.handedOver(to: "crowd")
            setenv("NOTIFYBUS_RELAY", "yes", 1)
            raiseDescriptorLimit()
            let scene = try RelayScene(kind)
            let before = residentBytes(of: scene.agentProcess)
            let members = try (0..<(isLongRun ? 200 : 20)).map { try Member($0, in: scene) }
            /// Posts names that all observe and names that only one does, and returns once each has heard its own.
            func post(rounds: Int) throws {
                let soFar = members[0].expected.count
                for _ in 0..<rounds {
                    try scene.post(["com.example.all"] + members.map(\.ownName))
                    for member in members { member.expect("com.example.all", member.ownName) }
                }
                for member in members {
                    #expect(member.heard.wait(forCount: soFar + 2 * rounds))
                    #expect(member.heard.elements.map(\.string) == member.expected)
                }
            }
            try post(rounds: 20)
            let middle = residentBytes(of: scene.agentProcess)
            #expect(middle - before < (4 << 20) + members.count * (32 << 10))
            try post(rounds: 50)
            #expect(residentBytes(of: scene.agentProcess) - middle < 4 << 20)
        }
    }
}

/// A program in a sandbox of its own, and what it should have heard.
private final class Member {
    let ownName: String
    let heard = Recorder<NotifyName>()
    private(set) var expected: [String] = []
    private let sandbox: FlatpakSandbox
    private let center: NotifyCenter
    private let observation: NotifyCenter.Observation

    init(_ number: Int, in scene: RelayScene) throws {
        ownName = "com.example.own.\(number)"
        sandbox = try scene.makeSandbox()
        center = NotifyCenter(bus: .address(sandbox.busAddress))
        let names = try [NotifyName("com.example.all"), NotifyName(ownName)]
        observation = try center.addObserver(matching: .names(names), timeout: .seconds(25)) { [heard] in
            heard.append($0)
        }
    }

    func expect(_ names: String...) { expected += names }
}

/// Each sandbox takes a few of this process's descriptors.
private func raiseDescriptorLimit() {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_cur = limit.rlim_max
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
}
