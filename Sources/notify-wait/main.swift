// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc

StandardStreams.prepare()
exit(WaitCommand.run(Argument.ofThisProcess()).rawValue)
