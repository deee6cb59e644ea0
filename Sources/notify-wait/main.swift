// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc

StandardStreams.prepare()
// The connection is left to the kernel: nobody is waiting for what may still come.
exit(WaitCommand.run(Argument.ofThisProcess()).rawValue)
