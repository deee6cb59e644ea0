// SPDX-License-Identifier: Apache-2.0

package import CommandSupport

extension Program {
    package static var notifyState: Program { Program(StateCommand.command, run: StateCommand.run) }
}
