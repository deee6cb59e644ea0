// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import NotifyWire

/// How the values of a message are read in place.
@Suite struct WireReaderTests {
    /// What a reader makes of bytes, and how far it gets.
    private func read<Value>(
        _ bytes: [UInt8],
        from start: Int = 0,
        isBigEndian: Bool = false,
        _ read: (inout WireReader) -> Value
    ) -> (value: Value, position: Int) {
        bytes.withUnsafeBytes { bytes in
            var reader = WireReader(bytes, start..<bytes.count, isBigEndian: isBigEndian)
            return (read(&reader), reader.position)
        }
    }

    @Test func `numbers are aligned, in both byte orders, and end where the message does`() {
        let bytes: [UInt8] = [9, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
        #expect(read(bytes, from: 1) { $0.uint32() } == (0x0403_0201, 8))
        #expect(read(bytes, from: 1, isBigEndian: true) { $0.uint32() } == (0x0102_0304, 8))
        #expect(read(bytes, from: 3) { $0.uint16() } == (0x0201, 6))
        #expect(read(bytes, from: 3, isBigEndian: true) { $0.uint16() } == (0x0102, 6))
        #expect(read(bytes, from: 8) { $0.uint64() } == (0x0c0b_0a09_0807_0605, 16))
        #expect(read(bytes, from: 8, isBigEndian: true) { $0.uint64() } == (0x0506_0708_090a_0b0c, 16))
        // As they are, wherever they begin.
        #expect(read(bytes, from: 5) { $0.fourBytes() } == (0x0504_0302, 9))
        #expect(read(bytes) { $0.byte() } == (9, 1))
        #expect(read([1, 2, 3]) { $0.uint32() }.value == nil && read([1, 2, 3]) { $0.fourBytes() }.value == nil)
        #expect(read([1]) { $0.uint16() }.value == nil && read([]) { $0.byte() }.value == nil)
        #expect(read(Array(bytes[..<7])) { $0.uint64() }.value == nil)
        #expect(read([1, 2, 3, 4]) { $0.uint32() } == (0x0403_0201, 4))
        #expect(read([1, 2]) { $0.uint16() } == (0x0201, 2))
    }

    @Test func `only zeros fill the space before a value, and there must be enough of it`() {
        #expect(read([9, 0, 0, 0], from: 1) { $0.align(to: 4) } == (true, 4))
        #expect(read([9, 0, 0, 1], from: 1) { $0.align(to: 4) }.value == false)
        #expect(read([9, 0, 0], from: 1) { $0.align(to: 4) }.value == false)
        #expect(read([9, 9, 9, 9], from: 0) { $0.align(to: 8) } == (true, 0))
        #expect(read([9, 0, 1, 2], from: 1) { $0.uint16() } == (0x0201, 4))
        #expect(read([9, 7, 1, 2], from: 1) { $0.uint16() }.value == nil)
    }

    @Test func `a text ends with the only NUL, within the message`() {
        func string(_ bytes: [UInt8]) -> ([UInt8]?, Int) { read(bytes) { $0.string().map { Array($0) } } }
        func signature(_ bytes: [UInt8]) -> ([UInt8]?, Int) { read(bytes) { $0.signature().map { Array($0) } } }
        #expect(string([2, 0, 0, 0, 65, 66, 0, 9]) == ([65, 66], 7))
        #expect(string([0, 0, 0, 0, 0]) == ([], 5))
        #expect(string([2, 0, 0, 0, 65, 66]).0 == nil && string([2, 0, 0, 0, 65, 66, 67]).0 == nil)
        #expect(string([2, 0, 0, 0, 65, 0, 0]).0 == nil && string([255, 255, 255, 255, 65, 0]).0 == nil)
        #expect(string([1, 0, 0]).0 == nil)
        #expect(signature([1, 115, 0, 9]) == ([115], 3))
        #expect(signature([]).0 == nil && signature([1, 115]).0 == nil && signature([1, 115, 1]).0 == nil)
    }

    @Test func `an array is within the message, and no longer than the specification allows`() {
        #expect(read([4, 0, 0, 0, 1, 2, 3, 4]) { $0.arrayEnd(alignment: 1) } == (8, 4))
        #expect(read([0, 0, 0, 0, 0, 0, 0, 0]) { $0.arrayEnd(alignment: 8) } == (8, 8))
        #expect(read([5, 0, 0, 0, 1, 2, 3, 4]) { $0.arrayEnd(alignment: 1) }.value == nil)
        #expect(read([0, 0, 0, 0, 0, 0, 0]) { $0.arrayEnd(alignment: 8) }.value == nil)
        let longest = [UInt8](repeating: 0, count: 67_108_864 + 8)
        for (more, isValid): (UInt8, Bool) in [(0, true), (1, false)] {
            #expect((read([more, 0, 0, 4] + longest) { $0.arrayEnd(alignment: 1) }.value != nil) == isValid)
        }
    }

    @Test func `skipping goes forward only, to the end at most, and what was read may be read again`() {
        let bytes: [UInt8] = [1, 2, 3, 4]
        #expect(read(bytes, from: 1) { $0.skip(to: 4) } == (true, 4))
        #expect(read(bytes, from: 1) { $0.skip(to: 1) } == (true, 1))
        #expect(read(bytes, from: 1) { $0.skip(to: 5) } == (false, 1))
        #expect(read(bytes, from: 1) { $0.skip(to: 0) } == (false, 1))
        #expect(read(bytes) { reader in (reader.fourBytes(), reader.isAtEnd) }.value == (0x0403_0201, true))
        let again = read(bytes) { reader in
            _ = reader.fourBytes()
            reader.goBack(3)
            return (reader.byte(), reader.isAtEnd)
        }
        #expect(again.value == (2, false) && again.position == 2)
    }

    // MARK: - Values

    private func values(
        _ types: String,
        _ bytes: [UInt8],
        _ all: [Int32] = [],
        atMost count: Int = BusValueReader.maximumCount
    ) -> [BusValue]? {
        let types = Array(types.utf8)
        return types.withUnsafeBytes { types in
            bytes.withUnsafeBytes { bytes in
                let wire = WireReader(bytes, 0..<bytes.count, isBigEndian: false)
                var reader = BusValueReader(wire, maximumCount: count)
                return reader.values(types, MessageDescriptors(all))
            }
        }
    }

    @Test func `a structure has a member at least, an entry of a dictionary two, and both an end`() {
        let (one, two) = (BusValue.number(code: UInt8(ascii: "y"), 1), BusValue.number(code: UInt8(ascii: "y"), 2))
        #expect(values("(y)", [1, 2]) == [.structure([one])])
        #expect(values("((y)y)", [1, 2]) == [.structure([.structure([one]), two])])
        #expect(values("{yy}", [1, 2]) == [.entry(one, two)])
        for types in ["()", "{}", "(()y)", "{y}", "{yyy}", "(y", "(", "y)", "(y}", "{yy)", "a", "(a)"] {
            #expect(values(types, [1, 2, 3, 0, 0, 0, 0, 0]) == nil, "\(types)")
        }
        #expect(values("v", [2, 40, 41, 0]) == nil && values("v", [3, 40, 121, 41, 0, 0, 0, 0, 1]) != nil)
    }

    /// One byte of a message may stand for a value, which takes forty here.
    @Test func `no more values are read than the limit, those within others among them`() {
        for (types, bytes) in [("yyy", [1, 2, 3]), ("(yy)", [1, 2]), ("ay", [2, 0, 0, 0, 1, 2])] as [(String, [UInt8])]
        {
            #expect(values(types, bytes, atMost: 3) != nil && values(types, bytes, atMost: 2) == nil, "\(types)")
        }
    }

    @Test(
        arguments: [
            ("{hhh}", [0, 0, 0]), ("{h}", [0]), ("(hs)", [0]), ("hs", [0, 9]), ("ah", [8, 0]), ("ah", [6, 0, 0]),
            ("av", [12, 0x6801, 0, 0x3f01]),
        ] as [(String, [UInt32])]
    )
    func `of values that are not valid no descriptor stays open`(types: String, numbers: [UInt32]) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { Issue.record("there is no pipe: \(errno)"); return }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let bytes = numbers.flatMap { number in withUnsafeBytes(of: number.littleEndian) { Array($0) } }
        #expect(values(types, bytes, [ends[1]]) == nil)
        // Closed everywhere; a program that another test starts has a copy for a moment.
        var end = pollfd(fd: ends[0], events: Int16(POLLIN), revents: 0)
        #expect(poll(&end, 1, 10_000) == 1 && end.revents & Int16(POLLHUP) != 0)
        close(ends[0])
    }
}
