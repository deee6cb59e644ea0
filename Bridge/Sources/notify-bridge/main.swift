// SPDX-License-Identifier: Apache-2.0

import Glibc
import NotifyBridge

exit(BridgeCommand.run(Array(CommandLine.arguments.dropFirst())))
