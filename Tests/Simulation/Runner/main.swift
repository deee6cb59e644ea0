// SPDX-License-Identifier: Apache-2.0

import Glibc
import Simulation

// Sets and dictionaries must have the same order in each run, or a seed would not be a test case.
if getenv("SWIFT_DETERMINISTIC_HASHING") == nil {
    setenv("SWIFT_DETERMINISTIC_HASHING", "1", 1)
    execv("/proc/self/exe", CommandLine.unsafeArgv)
}
exit(Simulator.run(Array(CommandLine.arguments.dropFirst())))
