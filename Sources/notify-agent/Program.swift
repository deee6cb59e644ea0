// SPDX-License-Identifier: Apache-2.0

package import CommandSupport

extension Program {
    package static var notifyAgent: Program { Program(AgentCommand.command, run: AgentCommand.run) }
}
