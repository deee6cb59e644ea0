// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import NotifyCore

/// Posts that wait until it is known who has sent them.
@Suite struct SenderDirectoryTests {
    private let owned: NotifyName = "user.uid.1000.a"
    private let free: NotifyName = "com.example.a"

    private func text(_ judgement: SenderDirectory.Judgement) -> String {
        switch judgement {
        case .believed: "believed"
        case .refused: "refused"
        case .held(let isFirst, let isDropped): "held\(isFirst ? ", the first" : "")\(isDropped ? ", dropped" : "")"
        }
    }

    @Test func `a name without an owner, and one whose sender is known, need not wait`() {
        var senders = SenderDirectory()
        #expect(text(senders.judge(free, from: ":1.1", nil)) == "believed")
        #expect(text(senders.judge(owned, from: ":1.1", 1_000)) == "believed")
        #expect(text(senders.judge(owned, from: ":1.1", 1_001)) == "refused")
        #expect(!senders.isHolding && !senders.hasVerified && senders.nextVerified() == nil)
    }

    @Test(arguments: [(1_000, .believed), (1_001, .refused), (nil, .unknown)] as [(UInt32?, SenderDirectory.Verdict)])
    func `what a sender posts while it is being checked comes in order, and the rest at once`(
        user: UInt32?,
        verdict: SenderDirectory.Verdict
    ) throws {
        var senders = SenderDirectory()
        #expect(text(senders.judge(owned, from: ":1.1", nil)) == "held, the first")
        #expect(text(senders.judge(free, from: ":1.1", nil)) == "held")
        #expect(text(senders.judge(free, from: ":1.2", nil)) == "believed")
        #expect(text(senders.judge(owned, from: ":1.2", nil)) == "held, the first")
        senders.learn(user: 1_000, of: ":1.3")
        #expect(senders.isHolding && !senders.hasVerified)
        for sender in [":1.1", ":1.2"] { senders.learn(user: user, of: sender) }
        #expect(!senders.isHolding && senders.hasVerified)
        for (name, sender, expected) in [(owned, ":1.1", verdict), (free, ":1.1", .believed), (owned, ":1.2", verdict)]
        {
            let verified = senders.nextVerified()
            #expect(try #require(verified) == (name, sender, expected))
        }
        #expect(senders.nextVerified() == nil && !senders.hasVerified)
        #expect(text(senders.judge(free, from: ":1.1", nil)) == "believed")
    }

    @Test func `if the connection is lost, what waits is known, whether its sender is or not`() {
        var senders = SenderDirectory()
        #expect(senders.takeAll() == [])
        for sender in [":1.1", ":1.2"] { for name in [owned, free] { _ = senders.judge(name, from: sender, nil) } }
        senders.learn(user: 1_000, of: ":1.2")
        #expect(senders.takeAll() == [owned, free, owned, free])
        #expect(!senders.isHolding && !senders.hasVerified && senders.takeAll() == [])
    }
}
