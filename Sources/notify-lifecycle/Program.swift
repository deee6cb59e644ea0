// SPDX-License-Identifier: Apache-2.0

package import CommandSupport

extension Program {
    package static var notifyLifecycle: Program { Program(LifecycleCommand.command, run: LifecycleCommand.run) }
}
