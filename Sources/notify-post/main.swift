// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc

StandardStreams.prepare()
// The connection is left to the kernel: what had to be said has been said when this returns.
exit(PostCommand.run(Argument.ofThisProcess()).rawValue)
