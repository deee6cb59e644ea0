// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc
import NotifyBridge

StandardStreams.prepare()
exit(Program.notifyBridge.run(Array(Argument.list(CommandLine.unsafeArgv).dropFirst())).rawValue)
