// SPDX-License-Identifier: Apache-2.0

import FuzzDriver
import MessageComparison
import NotifyCore

/// Reads bytes in every way that the library and the agent read what a bus sends. Nothing may trap, and our
/// result must be the same as libdbus's.
func tryReading(_ bytes: UnsafeRawBufferPointer) {
    if let fault = MessageComparison.fault(in: bytes) { fail(fault) }
    let whole = messages(bytes, .ofMessage, piece: bytes.count)
    // The first byte also determines where the stream is split, so that the fuzzer explores that.
    let piece = Int(bytes.first ?? 0) % 61 + 1
    guard messages(bytes, .ofMessage, piece: piece) == whole else { fail("torn in pieces it reads otherwise") }
    _ = messages(bytes, .anywhere, piece: bytes.count)
    _ = messages(bytes, .anywhere, piece: piece)
}

/// The messages that come out, described by their serials.
private func messages(_ bytes: UnsafeRawBufferPointer, _ beginning: MessageReader.Beginning, piece: Int) -> [UInt32] {
    let reader = MessageReader(beginning)
    var names = NameCache()
    var found: [UInt32] = []
    func take() {
        while true {
            switch reader.next() {
            case .message(let message):
                found.append(message.serial)
                if let name = names.name(in: message) { found.append(UInt32(name.string.utf8.count)) }
                var values = BusValueReader(message.bodyReader)
                if let all = values.values(message.signature) { found.append(UInt32(all.count)) }
            case .passedOver: found.append(0)
            case .nothing, .broken: return
            }
        }
    }
    for start in stride(from: 0, to: bytes.count, by: max(piece, 1)) {
        reader.feed(UnsafeRawBufferPointer(rebasing: bytes[start..<min(bytes.count, start + piece)]))
        take()
    }
    reader.finish()
    take()
    return found
}

#if FUZZING
    /// Called by libFuzzer.
    @_cdecl("LLVMFuzzerTestOneInput")
    public func fuzzOne(_ start: UnsafeRawPointer?, _ count: Int) -> CInt {
        tryReading(UnsafeRawBufferPointer(start: start, count: count))
        return 0
    }
#else
    @main enum Replay {
        static func main() { replay(tryReading) }
    }
#endif
