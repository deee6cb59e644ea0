// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc

// Nothing here is a variable: one of this file belongs to the main actor, and 0.4 MB of Swift's concurrency library with it.
StandardStreams.prepare()
exit(Commands.run().rawValue)
