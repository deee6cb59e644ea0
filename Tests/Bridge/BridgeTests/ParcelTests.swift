// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import NotifyBridge

/// What the bridge and the process of its connection say to each other.
@Suite struct ParcelTests {
    @Test("What a process has sent is read, though it has ended without reading everything")
    func leftUnread() throws {
        var ends: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
        let bridge = ParcelSocket(ends[0])
        do {
            let process = ParcelSocket(ends[1])
            for _ in 0..<3 { #expect(bridge.send(Parcel(.publish).bytes, waits: false) == .sent) }
            for kind in [Parcel.Kind.message, .answered, .ended] {
                #expect(process.send(Parcel(kind).bytes, waits: false) == .sent)
            }
        }
        var kinds: [Parcel.Kind] = []
        var isGone = false
        while !isGone {
            switch bridge.receive(waits: false) {
            case .parcel(let parcel): kinds.append(parcel.kind)
            case .nothing: try #require(Bool(false), "it is not known that the other end is closed")
            case .gone: isGone = true
            }
        }
        #expect(kinds == [.message, .answered, .ended])
    }
}
