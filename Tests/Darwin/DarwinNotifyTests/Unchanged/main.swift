// SPDX-License-Identifier: Apache-2.0

// Programs whose files are as on Apple's systems: the package compiles them with the flags of Documentation/porting.md.
import Foundation

func finish() -> Never {
    fflush(nil)
    exit(0)
}

switch CommandLine.arguments.dropFirst().first {
case "only-foundation": onlyFoundation()
case "with-core-foundation": withCoreFoundation()
case "every-center": everyCenter()
default: exit(64)
}
