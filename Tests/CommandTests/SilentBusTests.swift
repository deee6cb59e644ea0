// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import NotifyCore
import TestSupport
import Testing

@testable import notify_post

/// A bus that accepts a connection and then says nothing.
@Suite struct SilentBusTests {
    private func failure(_ body: () throws(PostFailure) -> Void) -> PostFailure? {
        do throws(PostFailure) {
            try body()
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: busKinds)
    func `without -t a poster gives up on it, with 69 and a sentence`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let relay = try BusRelay(to: bus.address, .fallsSilent)
        defer { relay.close() }
        var poster = Poster(
            NotifyCenter(bus: .address(relay.address)),
            until: nil,
            busLimit: .milliseconds(100)
        )
        let end = try #require(
            failure { () throws(PostFailure) in
                _ = try poster.post("com.example.a")
                try poster.finish()
            }
        )
        #expect(end.code == .unavailable)
        #expect(end.message == "the bus did not answer; it may be stopped or overloaded")
        // As for `notify-post -`, which asks before it reads.
        var other = Poster(NotifyCenter(bus: .address(relay.address)), until: nil, busLimit: .milliseconds(100))
        #expect(failure { () throws(PostFailure) in try other.confirm() }?.code == .unavailable)
    }

    @Test(arguments: busKinds)
    func `with -t it is a timeout`(kind: BusKind) throws {
        let bus = try PrivateBus(kind)
        let relay = try BusRelay(to: bus.address, .fallsSilent)
        defer { relay.close() }
        for arguments in [["a"], ["-"]] {
            let result = try run(
                productPath("notify-post"),
                ["--address", relay.address, "-t", "300ms"] + arguments,
                input: "a\n",
                timeout: .patience
            )
            #expect(result.status == 2)
        }
    }
}
