// SPDX-License-Identifier: Apache-2.0

package import CommandSupport

extension Program {
    package static var notifyWait: Program { Program(WaitCommand.command, run: WaitCommand.run) }
}
