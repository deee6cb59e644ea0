// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc

StandardStreams.prepare()
exit(LifecycleCommand.run(Argument.ofThisProcess()).rawValue)
