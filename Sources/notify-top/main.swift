// SPDX-License-Identifier: Apache-2.0

import CommandSupport
import Glibc

StandardStreams.prepare()
let arguments = Argument.ofThisProcess()
let code = Command.generate(arguments, for: TopCommand.command) ?? TopCommand.run(arguments)
exit(code.rawValue)
