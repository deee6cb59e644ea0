// SPDX-License-Identifier: Apache-2.0

import FuzzDriver
import Glibc

/// Tries what the first byte chooses, with choices made by the others. Nothing may trap, and nothing may hang.
func tryAll(_ bytes: UnsafeRawBufferPointer) {
    guard let first = bytes.first else { return }
    let choices = Choices(UnsafeRawBufferPointer(rebasing: bytes.dropFirst()))
    switch first % 8 {
    case 0, 1: AgentScene.run(choices)
    case 2: ObserverScene.run(choices)
    case 3: CoordinatorMachine.run(choices)
    case 4: LauncherMachine.run(choices)
    case 5: ObserverMachine.run(choices)
    case 6: ValueReading.run(choices)
    default: TextReading.run(choices)
    }
}

#if FUZZING
    /// Where the input is kept while it is tried. A trap in one of our threads, which take no signals, ends the process
    /// before libFuzzer can save anything.
    private let current: Int32 = getenv("FUZZ_CURRENT").map { open($0, O_RDWR | O_CREAT | O_CLOEXEC, 0o600) } ?? -1

    /// Called by libFuzzer.
    @_cdecl("LLVMFuzzerTestOneInput")
    public func fuzzOne(_ start: UnsafeRawPointer?, _ count: Int) -> CInt {
        if current >= 0 {
            ftruncate(current, count)
            pwrite(current, start, count, 0)
        }
        tryAll(UnsafeRawBufferPointer(start: start, count: count))
        return 0
    }
#else
    @main enum Replay {
        static func main() { replay(tryAll) }
    }
#endif
