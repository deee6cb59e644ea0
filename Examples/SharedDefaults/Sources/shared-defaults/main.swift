// SPDX-License-Identifier: Apache-2.0

import Foundation
import SharedDefaults

/// A command that demonstrates the library:
///
///     shared-defaults SUITE get KEY
///     shared-defaults SUITE set KEY VALUE
///     shared-defaults SUITE fill PREFIX COUNT     writes 1 to COUNT to ten keys, in turn
///     shared-defaults SUITE watch                 prints each key that changes and its value

/// Prints a line immediately, even to a file.
func say(_ line: String) {
    print(line)
    fflush(nil)
}

let arguments = Array(CommandLine.arguments.dropFirst())
guard arguments.count >= 2 else {
    print("usage: shared-defaults SUITE get KEY | set KEY VALUE | fill PREFIX COUNT | watch")
    exit(64)
}
do {
    let defaults = try SharedDefaults(suiteName: arguments[0])
    switch (arguments[1], arguments.count) {
    case ("get", 3): print(try defaults.string(forKey: arguments[2]) ?? "")
    case ("set", 4): try defaults.set(arguments[3], forKey: arguments[2])
    case ("fill", 4):
        for number in 1...(Int(arguments[3]) ?? 1) { try defaults.set(number, forKey: "\(arguments[2])\(number % 10)") }
    case ("watch", 2):
        let observation = try await defaults.observe { key in
            say("\(key) \((try? defaults.string(forKey: key)) ?? "")")
        }
        say("watching")
        withExtendedLifetime(observation) {
            while true { pause() }
        }
    default: exit(64)
    }
} catch {
    FileHandle.standardError.write(Data("shared-defaults: \(error)\n".utf8))
    exit(69)
}
