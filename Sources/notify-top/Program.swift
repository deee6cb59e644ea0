// SPDX-License-Identifier: Apache-2.0

package import CommandSupport

extension Program {
    package static var notifyTop: Program { Program(TopCommand.command, run: TopCommand.run) }
}
